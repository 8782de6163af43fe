package uring

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// newRing skips where the kernel has no io_uring for us.
func newRing(t *testing.T, entries int) *Ring {
	t.Helper()
	r, err := New(entries)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// A regular file takes no commands; each comes back with that, and with its data,
// many times around the rings.
func TestCommands(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const entries = 4
	r := newRing(t, entries)
	if data, _, ok := r.Next(); ok {
		t.Fatalf("a new ring has the end of %d", data)
	}
	next := uint64(1)
	for round := range 1000 {
		n := 1 + round%entries
		for i := range n {
			r.Queue(&Command{FD: int(f.Fd()), Op: 1, Data: next + uint64(i)})
		}
		if err := r.Enter(n); err != nil {
			t.Fatal(err)
		}
		for range n {
			if data, _, ok := r.Peek(); !ok || data != next {
				t.Fatalf("command %d: data %d, %v lie ahead", next, data, ok)
			}
			data, res, ok := r.Next()
			if !ok || data != next || res != -int32(unix.EOPNOTSUPP) {
				t.Fatalf("command %d: data %d, result %d, %v", next, data, res, ok)
			}
			next++
		}
		if _, _, ok := r.Next(); ok {
			t.Fatal("more ends than commands")
		}
	}
}

func TestClosedDescriptor(t *testing.T) {
	r := newRing(t, 1)
	r.Queue(&Command{FD: 1 << 20, Data: 7})
	if err := r.Enter(1); err != nil {
		t.Fatal(err)
	}
	if data, res, ok := r.Next(); !ok || data != 7 || res != -int32(unix.EBADF) {
		t.Fatalf("data %d, result %d, %v", data, res, ok)
	}
}

func TestTooMany(t *testing.T) {
	newRing(t, 1)
	if r, err := New(1 << 30); !errors.Is(err, unix.EINVAL) {
		if err == nil {
			r.Close()
		}
		t.Fatalf("a ring of a billion entries: %v, want EINVAL", err)
	}
}
