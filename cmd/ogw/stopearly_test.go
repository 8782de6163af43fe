package main

import (
	"bytes"
	"net"
	"syscall"
	"testing"
	"time"
)

// TestStopAsSoonAsItListens: whoever can connect knows of a process that it can
// stop, and that ends well.
func TestStopAsSoonAsItListens(t *testing.T) {
	w := newWorld(t)
	for range 10 {
		c := w.command(append([]string{"serve"}, anyPort...)...)
		var said bytes.Buffer
		c.Stdout, c.Stderr = &said, &said
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- c.Wait() }()
		for end := time.Now().Add(endLimit); ; {
			if conn, err := net.Dial("unix", w.data("admin.sock")); err == nil {
				conn.Close()
				break
			}
			if time.Now().After(end) {
				t.Fatal("it does not listen")
			}
		}
		if err := c.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("%v:\n%s", err, said.String())
			}
		case <-time.After(endLimit):
			t.Fatal("it still runs")
		}
	}
}
