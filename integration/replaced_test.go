package integration

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"ogw/integration/doors"
)

// TestReplacedUnderWriters replaces a file by a PUT under programs that have it open:
// who wrote before cannot write on, who did not writes to the new content, and the
// object is never a mixture.
func TestReplacedUnderWriters(t *testing.T) {
	s := newServer(t, options{})
	s.makeBucket("replaced")
	mnt := s.Mount()
	for name, door := range map[string]doors.Door{"s3": s.s3Door(), "rest": doors.NewREST(s.REST)} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(mnt, "replaced", name)
			wrote, idle := openFor(t, path), openFor(t, path)
			if _, err := wrote.WriteString("before"); err != nil {
				t.Fatal(err)
			}
			if err := door.Write("replaced/"+name, "new"); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if _, err := wrote.WriteString("after"); !errors.Is(err, unix.ESTALE) {
					t.Errorf("a write by who wrote before: %v", err)
				}
			}
			if err := wrote.Sync(); err != nil && !errors.Is(err, unix.ESTALE) {
				t.Error(err)
			}
			if b, err := os.ReadFile(path); err != nil || string(b) != "new" {
				t.Errorf("%q, %v", b, err)
			}
			if _, err := idle.WriteAt([]byte("N"), 0); err != nil {
				t.Errorf("a write by who did not write before: %v", err)
			}
			again := openFor(t, path)
			if _, err := again.WriteAt([]byte("W"), 2); err != nil {
				t.Errorf("a write by who opened it after: %v", err)
			}
			if err := errors.Join(idle.Sync(), again.Sync()); err != nil {
				t.Error(err)
			}
			if got, err := door.Read("replaced/" + name); err != nil || got != "NeW" {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func openFor(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}
