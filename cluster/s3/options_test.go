package s3

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"
)

var testTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// A connection that stands still fails; one that moves slowly does not.
func TestStallConn(t *testing.T) {
	a, z := net.Pipe()
	defer a.Close()
	defer z.Close()
	c := stallConn{a, 50 * time.Millisecond}
	go func() {
		for range 3 {
			z.Write([]byte("x"))
		}
	}()
	for range 3 {
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read of nothing: %v", err)
	}
	if _, err := c.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("write to nobody: %v", err)
	}
}
