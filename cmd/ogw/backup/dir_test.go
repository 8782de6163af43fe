package backup

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// nfsDir is a folder whose file system knows no flags of rename.
func nfsDir(t *testing.T, answer error) *Dir {
	t.Helper()
	d := testDir(t)
	d.renameNew = func(string, string) error { return answer }
	return d
}

// Where rename knows no RENAME_NOREPLACE, as over NFS, an object is still written whole,
// and replaces nothing.
func TestNewWithoutRenameFlags(t *testing.T) {
	for _, answer := range []error{unix.EINVAL, unix.ENOSYS, unix.EOPNOTSUPP} {
		d := nfsDir(t, answer)
		if err := d.Put(t.Context(), "packs/1/1", []byte("one"), false); err != nil {
			t.Errorf("%v: %v", answer, err)
			continue
		}
		if err := d.Put(t.Context(), "packs/1/1", []byte("two"), false); !errors.Is(err, ErrExist) {
			t.Errorf("%v: over another: %v", answer, err)
		}
		if b, err := d.Get(t.Context(), "packs/1/1", 0, -1); err != nil || string(b) != "one" {
			t.Errorf("%v: %q, %v", answer, b, err)
		}
		if left, err := os.ReadDir(d.file(newDir)); err != nil || len(left) > 0 {
			t.Errorf("%v: left behind: %v, %v", answer, left, err)
		}
	}
	d := nfsDir(t, unix.EACCES)
	d.link = func(string, string) error { t.Error("another error than that of a flag is passed over"); return nil }
	if err := d.Put(t.Context(), "packs/1/1", []byte("one"), false); !errors.Is(err, unix.EACCES) {
		t.Error(err)
	}
}

// A client of NFS that sends a link again, because its answer was lost, is told that the
// name exists.
func TestLinkWhoseAnswerWasLost(t *testing.T) {
	d := nfsDir(t, unix.EINVAL)
	d.link = func(from, to string) error {
		if err := unix.Link(from, to); err != nil {
			return err
		}
		return unix.EEXIST
	}
	if err := d.Put(t.Context(), "packs/1/1", []byte("one"), false); err != nil {
		t.Error(err)
	}
	if err := d.Put(t.Context(), "packs/1/1", []byte("two"), false); !errors.Is(err, ErrExist) {
		t.Errorf("over another: %v", err)
	}
	if b, err := d.Get(t.Context(), "packs/1/1", 0, -1); err != nil || string(b) != "one" {
		t.Errorf("%q, %v", b, err)
	}
}
