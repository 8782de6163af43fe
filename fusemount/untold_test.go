package fusemount

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestCloseOfReader: the kernel tells of the closes of files that are opened to be read only
// where somebody has locked the file.
func TestCloseOfReader(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		var flushes atomic.Int64
		top, _ := mountFS(t, openFS(t), Options{Transport: over, Observe: func(op string, _ time.Duration, _ syscall.Errno) {
			if op == "flush" {
				flushes.Add(1)
			}
		}})
		name := filepath.Join(top, "f")
		told := func(what string, flags int, want int64) {
			t.Helper()
			before := flushes.Load()
			must(t, opened(t, name, flags).Close())
			if n := flushes.Load() - before; n != want {
				t.Errorf("%s: %d times FLUSH, want %d", what, n, want)
			}
		}
		write(t, name, "text")
		told("of a reader", os.O_RDONLY, 0)
		told("of a writer", os.O_RDWR, 1)
		f := opened(t, name, os.O_RDWR)
		must(t, lockings[1].try(f, unix.F_WRLCK))
		told("of a reader of what is locked", os.O_RDONLY, 1)
		g := opened(t, name, os.O_RDWR)
		must(t, lockings[2].try(g, unix.F_WRLCK)) // POSIX locks of a process end with any close
		must(t, errors.Join(f.Close(), g.Close()))
		told("of a reader of what was locked", os.O_RDONLY, 1)
	})
}

// TestReaderLocks: locks that are set through a file that is opened to be read end with its
// close, for who tries next, whatever was tried before.
func TestReaderLocks(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		_, dir := mountBucket(t, over)
		for _, l := range lockings {
			t.Run(l.name, func(t *testing.T) {
				for i := range 100 {
					name := filepath.Join(dir, fmt.Sprint(l.name, i))
					write(t, name, "text")
					other := opened(t, name, os.O_RDWR)
					next := func() error { return lockings[2].try(other, unix.F_WRLCK) }
					if l.name == "flock" {
						next = func() error { return l.try(other, unix.F_WRLCK) }
					}
					write(t, name+".other", "text")
					reader, first := opened(t, name, os.O_RDONLY), opened(t, name+".other", os.O_RDONLY)
					must(t, l.try(first, unix.F_RDLCK)) // of the same process
					must(t, l.try(reader, unix.F_RDLCK))
					if i < 3 {
						if err := next(); !errors.Is(err, unix.EAGAIN) {
							t.Fatalf("%d: while it is locked: %v", i, err)
						}
					}
					must(t, errors.Join(first.Close(), reader.Close()))
					if err := next(); err != nil {
						t.Fatalf("%d: after the close: %v", i, err)
					}
					must(t, other.Close())
				}
			})
		}
	})
}
