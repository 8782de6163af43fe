package main

import (
	"fmt"
	"ogw/cmd/ogw/server"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A person at a terminal sees the first key, in text and in JSON.
func TestFirstKeyOnTerminal(t *testing.T) {
	for _, flag := range []string{"--json=false", "--json"} {
		w := newWorld(t)
		master, slave := openTerminal(t)
		c := w.command(append([]string{"serve", flag}, anyPort...)...)
		c.Stdout = slave
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = c.Process.Signal(syscall.SIGTERM)
			_ = c.Wait()
		}()
		_ = slave.Close()
		said, b := "", make([]byte, 4096)
		for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
			if key, err := readCredentials(w.data(server.CredentialsName)); err == nil && strings.Contains(said, key.Secret) {
				break
			}
			_ = master.SetReadDeadline(time.Now().Add(time.Second))
			n, _ := master.Read(b)
			said += string(b[:n])
		}
		key, err := readCredentials(w.data(server.CredentialsName))
		if err != nil || !strings.Contains(said, key.Secret) {
			t.Errorf("%s: %v, the terminal shows %q", flag, err, said)
		}
	}
}

// openTerminal returns both ends of a pseudo-terminal.
func openTerminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skip(err)
	}
	master = os.NewFile(uintptr(fd), "ptmx")
	t.Cleanup(func() { _ = master.Close() })
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Skip(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Skip(err)
	}
	if slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Skip(err)
	}
	return master, slave
}
