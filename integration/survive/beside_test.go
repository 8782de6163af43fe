package survive

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// last is the file that count writes, in its folder.
const last = "last"

// count writes numbers through a mount that does not survive, until that ends.
func count(w *world) error {
	f, err := os.OpenFile(last, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		if _, err := fmt.Fprintf(io.NewOffsetWriter(f, 0), "%08d", i); err != nil {
			if errors.As(err, new(syscall.Errno)) && i > 0 {
				return nil
			}
			return fmt.Errorf("write %d: %w", i, err)
		}
		if i == 100 {
			if err := os.WriteFile(w.stop+made, nil, 0o600); err != nil {
				return err
			}
		}
	}
}

// follow reads a file all the time, so that the kernel has its pages.
func follow(w *world) error {
	name, err := os.ReadFile(w.stop + beside)
	if err != nil {
		return err
	}
	return w.run(func(int) error {
		_, err := os.ReadFile(string(name))
		return err
	})
}

// What a program writes to the very end, through a mount that ends with the server,
// the kernel shows through one that stays.
func TestLeftBesideOthers(t *testing.T) {
	s := watch(t, testLimit)
	dir := s.bucket(s.mount("survive"))
	other := s.Mount("-o", "attr_timeout=2")
	for i := range 2 {
		if i > 0 {
			s.OGW("mount", "-o", "attr_timeout=2", other)
		}
		stop := filepath.Join(t.TempDir(), "stop")
		name := fmt.Sprint("count.", i)
		r := start(t, name, filepath.Join(other, "bucket"), stop)
		s.made(stop)
		file := filepath.Join(dir, name, last)
		if err := os.WriteFile(stop+beside, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		reader := start(t, fmt.Sprint("follow.", i), dir, stop)
		s.Stop()
		r.end(t)
		s.Start()
		s.finish(stop, reader)
		seen, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if stored := direct(t, file); !bytes.Equal(seen, stored) {
			t.Errorf("round %d: the kernel shows %s, stored is %s", i, seen, stored)
		}
	}
}

// direct reads a short file past the kernel's pages.
func direct(t *testing.T, name string) []byte {
	t.Helper()
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_DIRECT, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	b := make([]byte, 8)
	n, err := unix.Pread(fd, b, 0)
	if err != nil {
		t.Fatal(err)
	}
	return b[:n]
}
