package survive

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ogw/integration/testenv"
)

// unsyncedBytes are written without a sync, a part of the disk of diskBytes.
const (
	unsyncedBytes = 8 << 20
	diskBytes     = 256 << 20
)

// Added to the name of the file that ends the program: it has its file, and there is
// no room any more.
const (
	opened = ".opened"
	full   = ".full"
)

// unsynced writes to a file when the disk is full, and at the end looks at what is
// there and syncs it.
func unsynced(w *world) error {
	f, err := os.OpenFile("f", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	want := make([]byte, unsyncedBytes)
	for i := range want {
		want[i] = byte(i * i >> 7)
	}
	if err := errors.Join(f.Sync(), os.WriteFile(w.stop+opened, nil, 0o600)); err != nil {
		return err
	}
	for err := os.ErrNotExist; errors.Is(err, os.ErrNotExist); time.Sleep(time.Millisecond) {
		if _, err = os.Stat(w.stop + full); err == nil {
			break
		}
	}
	if _, err := f.Write(want); err != nil {
		return err
	}
	if err := os.WriteFile(w.stop+made, nil, 0o600); err != nil {
		return err
	}
	if err := w.run(func(int) error { return nil }); err != nil {
		return err
	}
	got := make([]byte, unsyncedBytes)
	if _, err := f.ReadAt(got, 0); err != nil || !bytes.Equal(got, want) {
		return fmt.Errorf("other bytes, %w", err)
	}
	return errors.Join(f.Sync(), f.Close())
}

// small puts the data folder on a small disk.
func (s *watched) small() {
	t := s.T
	s.Stop()
	kept := s.Data + ".kept"
	for _, step := range []func() error{
		func() error { return os.Rename(s.Data, kept) },
		func() error { return os.Mkdir(s.Data, 0o700) },
		func() error {
			return unix.Mount("none", s.Data, "tmpfs", 0, fmt.Sprintf("size=%d,mode=700", diskBytes))
		},
		func() error { return exec.Command("cp", "-a", kept+"/.", s.Data).Run() },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		s.Stop()
		if err := unix.Unmount(s.Data, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	s.Start()
}

// fill leaves no room on the data folder's disk.
func (s *watched) fill() (filler string) {
	s.T.Helper()
	filler = filepath.Join(s.Data, "filler")
	f, err := os.Create(filler)
	for b := make([]byte, 1<<20); err == nil && len(b) > 0; {
		if _, err = f.Write(b); errors.Is(err, unix.ENOSPC) {
			b, err = b[:len(b)/2], nil
		}
	}
	if err = errors.Join(err, f.Close()); err != nil {
		s.T.Fatal(err)
	}
	return filler
}

// What was answered is there after a kill with a full disk, and is stored when
// there is room again.
func TestFullDisk(t *testing.T) {
	s := watch(t, testLimit)
	s.small()
	dir := s.bucket(s.mount("survive"))
	stop := filepath.Join(t.TempDir(), "stop")
	for i := range 3 {
		name := fmt.Sprint("unsynced.", i)
		r := start(t, name, dir, stop+name)
		s.await(name, stop+name+opened)
		filler := s.fill()
		if err := os.WriteFile(stop+name+full, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		s.made(stop + name)
		s.Kill()
		s.Start()
		if !strings.Contains(s.Log(), "cannot be stored yet") {
			t.Errorf("round %d: the log does not tell that there is no room:\n%s", i, s.Log())
		}
		s.Kill()
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		s.Start()
		s.finish(stop+name, r)
	}
	if t.Failed() {
		t.Log(s.Log())
	}
	testenv.Eventually(t, "a store that may be written to", func() error {
		return os.WriteFile(filepath.Join(dir, "more"), make([]byte, unsyncedBytes), 0o600)
	})
}
