package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ogw/cmd/ogw/server"
	"ogw/fusemount"
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

// TestHangup: a mount ends in order with its terminal, and loses nothing; without one
// SIGHUP ends no process, whether it has an audit log or not.
func TestHangup(t *testing.T) {
	w := newWorld(t)
	quiet := []string{"--set", "audit.admin=false", "--set", "audit.access=false"}
	d := w.serve(append(quiet, anyPort...)...)
	d.put("/b/first", "kept")
	for range 3 {
		d.signal(syscall.SIGHUP)
	}
	if got := d.get("/b/first"); got != "kept" {
		t.Errorf("%q", got)
	}
	d.signal(syscall.SIGTERM)
	if code := d.wait(endLimit); code != 0 {
		t.Errorf("exit code %d", code)
	}

	needFUSE(t)
	mnt := w.mkdir("mnt")
	master, slave := openTerminal(t)
	c := w.command(append([]string{"mount", mnt}, quiet...)...)
	c.Stdin, c.Stdout, c.Stderr = slave, slave, slave
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() })
	_ = slave.Close()
	for end := time.Now().Add(endLimit); !fusemount.IsMount(mnt); time.Sleep(mountPoll) {
		if time.Now().After(end) {
			t.Fatal("no mount")
		}
	}
	text := strings.Repeat("0123456789", 500)
	if err := os.WriteFile(mnt+"/b/late", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := master.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil || fusemount.IsMount(mnt) {
		t.Errorf("%v, mounted %v", err, fusemount.IsMount(mnt))
	}
	if got := w.serve(anyPort...).get("/b/late"); got != text {
		t.Errorf("%d bytes", len(got))
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
