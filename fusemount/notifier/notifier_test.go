package notifier

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == Command {
		if err := Run(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// started returns a Client with a socket for a /dev/fuse, and the other end of that.
func started(t *testing.T) (c *Client, kernel int) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	c, err = start(pair[1])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		unix.Close(pair[0])
	})
	return c, pair[0]
}

func TestNotify(t *testing.T) {
	c, kernel := started(t)
	if err := c.Notify([]byte("message")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	if n, err := unix.Read(kernel, b); err != nil || string(b[:n]) != "message" {
		t.Errorf("%q, %v", b[:n], err)
	}
	if _, err := c.Size(&Size{Device: "0:0", Dirs: [][]byte{[]byte("/nonexistent")}}); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("the size of a file on no mount: %v", err)
	}
	if err := unix.Shutdown(kernel, unix.SHUT_RDWR); err != nil {
		t.Fatal(err)
	}
	if err := c.Notify([]byte("message")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("the kernel's error: %v", err)
	}
	c.Close()
	if err := c.Notify([]byte("message")); !errors.Is(err, ErrGone) {
		t.Errorf("behind the end: %v", err)
	}
}

// Calls that wait do not hold up others, as long as there are lines.
func TestCallsThatWait(t *testing.T) {
	c, kernel := started(t)
	var all sync.WaitGroup
	full := make(chan error, maxLines)
	for range maxLines / 2 { // the socket takes fewer
		all.Go(func() { full <- c.Notify(make([]byte, maxMessage/2)) })
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = c.Size(&Size{})
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("a call waits for others")
	}
	b := make([]byte, maxMessage)
	for range maxLines / 2 {
		if _, err := unix.Read(kernel, b); err != nil {
			t.Fatal(err)
		}
	}
	all.Wait()
	close(full)
	for err := range full {
		if err != nil {
			t.Error(err)
		}
	}
}

// The caller learns that the process was killed.
func TestKilled(t *testing.T) {
	c, _ := started(t)
	if _, err := c.Size(&Size{}); !errors.Is(err, syscall.ENOENT) {
		t.Fatal(err)
	}
	if err := unix.Kill(c.pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := c.Size(&Size{}); !errors.Is(err, ErrGone) {
			t.Error(err)
		}
	}
}

// What a call costs beside the write that it makes.
func BenchmarkNotify(b *testing.B) {
	null, err := unix.Open("/dev/null", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		b.Fatal(err)
	}
	c, err := start(null)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	message := make([]byte, 40)
	for b.Loop() {
		if err := c.Notify(message); err != nil {
			b.Fatal(err)
		}
	}
}
