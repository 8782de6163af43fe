package integration

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"ogw/integration/doors"
)

// durableCase changes one name and says what it is then; "" if it is gone.
type durableCase struct {
	name string
	do   func(t *testing.T, path string) error
	want string
}

// opened does something with a file that has text, and leaves it open.
func opened(text string, do func(f *os.File) error) func(*testing.T, string) error {
	return func(t *testing.T, path string) error {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return err
		}
		t.Cleanup(func() { f.Close() }) // its server is gone by then
		if _, err = f.WriteString(text); err != nil {
			return err
		}
		return do(f)
	}
}

// durableCases are what a mount has made durable when the last call returns, or,
// where no bytes are written, what the end of the process does not take.
var durableCases = []durableCase{
	{"write and close", func(_ *testing.T, path string) error { return os.WriteFile(path, []byte("text"), 0o644) }, "text"},
	{"write and fsync", opened("text", (*os.File).Sync), "text"},
	{"write and fdatasync", opened("text", func(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }), "text"},
	{"cut and fsync", opened("text and more", func(f *os.File) error { return errors.Join(f.Truncate(4), f.Sync()) }), "text"},
	{"close of a copied descriptor", opened("text", func(f *os.File) error {
		fd, err := unix.Dup(int(f.Fd()))
		return errors.Join(err, unix.Close(fd))
	}), "text"},
	{"copy_file_range and close", func(t *testing.T, path string) error {
		from, err := os.Open(filepath.Join(filepath.Dir(path), "source"))
		if err != nil {
			return err
		}
		defer from.Close()
		to, err := os.Create(path)
		if err != nil {
			return err
		}
		n, err := unix.CopyFileRange(int(from.Fd()), nil, int(to.Fd()), nil, 4, 0)
		if n != 4 {
			t.Errorf("copied %d bytes", n)
		}
		return errors.Join(err, to.Close())
	}, "text"},
	{"fallocate and fsync", opened("text", func(f *os.File) error {
		return errors.Join(unix.Fallocate(int(f.Fd()), 0, 0, 5), f.Sync())
	}), "text\x00"},
	{"rename", func(_ *testing.T, path string) error {
		return errors.Join(os.WriteFile(path+".new", []byte("text"), 0o644), os.Rename(path+".new", path))
	}, "text"},
	{"remove", func(_ *testing.T, path string) error {
		return errors.Join(os.WriteFile(path, []byte("text"), 0o644), os.Remove(path))
	}, ""},
}

// TestDurable kills the server right behind what the table of durability in
// docs/semantics.md promises of a mount, each in a file of its own.
func TestDurable(t *testing.T) {
	s := newServer(t, options{})
	dir := filepath.Join(s.Dir, "mnt")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s.OGW("mount", "-o", "io_uring=off", dir)
	bucket := filepath.Join(dir, "durable")
	if err := errors.Join(os.Mkdir(bucket, 0o755), os.WriteFile(filepath.Join(bucket, "source"), []byte("text"), 0o644)); err != nil {
		t.Fatal(err)
	}
	path := func(c durableCase) string { return strings.ReplaceAll(c.name, " ", "-") }
	for _, c := range durableCases {
		if err := c.do(t, filepath.Join(bucket, path(c))); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	s.Kill()
	s.Try("umount", "-l", dir)
	s.Start()
	rest := doors.NewREST(s.REST)
	for _, c := range durableCases {
		got, err := rest.Read("durable/" + path(c))
		if c.want == "" && !errors.Is(err, doors.ErrAbsent) || c.want != "" && (err != nil || got != c.want) {
			t.Errorf("%s: %q, %v; want %q", c.name, got, err, c.want)
		}
	}
	checkClean(t, s)
}
