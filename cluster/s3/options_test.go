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

// An answer is waited for from the last byte of the request on, however long that took.
func TestStallConnSlowUpload(t *testing.T) {
	const limit = 500 * time.Millisecond
	a, z := net.Pipe()
	defer a.Close()
	defer z.Close()
	c := stallConn{a, limit}
	answer := make(chan error, 1)
	go func() { // as HTTP does from the beginning of a connection
		_, err := c.Read(make([]byte, 1))
		answer <- err
	}()
	for range 6 {
		go func() {
			time.Sleep(limit / 4)
			z.Read(make([]byte, 1))
		}()
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(limit / 2)
	go z.Write([]byte("x"))
	if err := <-answer; err != nil {
		t.Errorf("answer to an upload that moved all the time: %v", err)
	}
	go func() {
		_, err := c.Read(make([]byte, 1))
		answer <- err
	}()
	go z.Read(make([]byte, 1))
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := <-answer; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("no answer: %v", err)
	}
}
