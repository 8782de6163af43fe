package fusemount

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// killedEnv has the test binary be the server of TestKilledWhileItAsks, with a mount there, whose requests come
// as killedTransportEnv says.
const (
	killedEnv          = "OGW_TEST_KILLED_MOUNT"
	killedTransportEnv = "OGW_TEST_KILLED_TRANSPORT"
)

// A server that is killed while a thread of its own waits for its answer (sizes, and probes of io_uring) ends,
// and its mount with it.
func TestKilledWhileItAsks(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		dir := t.TempDir()
		server := exec.Command(os.Args[0], "-test.run=^TestKilledServer$", "-test.v")
		server.Env = append(os.Environ(), killedEnv+"="+dir, killedTransportEnv+"="+strconv.Itoa(int(over)))
		out, err := server.StdoutPipe()
		must(t, err)
		in, err := server.StdinPipe()
		must(t, err)
		must(t, server.Start())
		t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }) // what is left there is no mount
		lines := bufio.NewScanner(out)
		for lines.Scan() && lines.Text() != "mounted" {
			t.Log(lines.Text())
		}
		// Of what the server had open itself, it would wait for the last answers.
		name := filepath.Join(dir, "bucket", "file")
		held := opened(t, name, os.O_RDWR)
		lock := unix.Flock_t{Type: unix.F_WRLCK}
		must(t, unix.FcntlFlock(held.Fd(), unix.F_OFD_SETLK, &lock))
		must(t, in.Close())
		time.Sleep(200 * time.Millisecond) // it waits, or will: both must do
		must(t, server.Process.Kill())
		inTime(t, "the end of a server that was killed", func() { _ = server.Wait() })
		if f, err := os.Open(name); err == nil {
			f.Close()
			t.Error("its mount is there")
		}
	})
}

// TestKilledServer is the server.
func TestKilledServer(t *testing.T) {
	dir := os.Getenv(killedEnv)
	if dir == "" {
		t.Skip("a part of TestKilledWhileItAsks")
	}
	fs := openFS(t)
	over, err := strconv.Atoi(os.Getenv(killedTransportEnv))
	must(t, err)
	_, err = Mount(fs, dir, Options{Transport: Transport(over)})
	must(t, err)
	name := filepath.Join(dir, "bucket", "file")
	must(t, os.Mkdir(filepath.Dir(name), 0o755))
	write(t, name, "")
	fmt.Println("mounted")
	_, err = io.Copy(io.Discard, os.Stdin)
	must(t, err)
	onOwnThread(func() {
		must(t, ownDescriptors(-1))
		fd, err := unix.Open(name, unix.O_RDWR, 0)
		must(t, err)
		lock := unix.Flock_t{Type: unix.F_WRLCK}
		must(t, unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLKW, &lock))
	})
}
