package vfs

import (
	"errors"
	"slices"
	"testing"

	"ogw/vfs/internal/xattr"
)

// TestWriteRevokesCapabilities: whatever changes a file's content takes its
// capabilities away, whichever caller does it, before and after the flush.
func TestWriteRevokesCapabilities(t *testing.T) {
	write := func(f *File) error { _, err := f.WriteAt(bg, []byte("x"), 1); return err }
	for name, change := range map[string]func(fs *FS, f *File) error{
		"write": func(_ *FS, f *File) error { return write(f) },
		"synced write": func(_ *FS, f *File) error {
			return errors.Join(write(f), f.Sync(bg))
		},
		"write for the superuser": func(_ *FS, f *File) error {
			_, err := f.WriteAtFor(bg, Root, []byte("x"), 0)
			return err
		},
		"write for another": func(_ *FS, f *File) error {
			_, err := f.WriteAtFor(bg, cred(1001, 1001), []byte("x"), 0)
			return err
		},
		"append": func(_ *FS, f *File) error { _, err := f.Append(bg, []byte("x")); return err },
		"truncate": func(fs *FS, f *File) error {
			_, err := fs.SetAttr(bg, Root, f.Ino(), SetAttr{Size: new(int64)})
			return err
		},
		"open with O_TRUNC": func(fs *FS, f *File) error {
			g, err := fs.Open(bg, Root, f.Ino(), OpenWrite|OpenTrunc)
			if err != nil {
				return err
			}
			return g.Close(bg)
		},
		"truncate that keeps setuid": func(fs *FS, f *File) error {
			_, err := fs.SetAttr(bg, Root, f.Ino(), SetAttr{Size: new(int64), KeepSetID: true})
			return err
		},
		"chown": func(fs *FS, f *File) error {
			_, err := fs.SetAttr(bg, Root, f.Ino(), SetAttr{UID: new(uint32)})
			return err
		},
		"PUT": func(fs *FS, _ *File) error { put(t, fs, "f", "of S3"); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			onEngines(t, func(t *testing.T, fs *FS) {
				ino := mustFile(t, fs, mustMkdir(t, fs, RootIno, "bucket"), "f")
				f := mustOpen(t, fs, ino, OpenRead|OpenWrite)
				defer f.Close(bg)
				want(t, write(f), nil)
				for _, name := range []string{xattr.Capability, "user.kept"} {
					want(t, fs.SetXattr(bg, Root, ino, Xattr{Name: name, Value: []byte("v")}, 0), nil)
				}
				want(t, f.Sync(bg), nil)
				capability := func() error { _, err := fs.GetXattr(bg, Root, ino, xattr.Capability); return err }
				want(t, capability(), nil) // what was written before does not revoke it
				want(t, change(fs, f), nil)
				want(t, capability(), ErrNoAttr)
				if list, err := fs.ListXattr(bg, Root, ino); err != nil || slices.Contains(list, xattr.Capability) {
					t.Errorf("the list has %q, %v", list, err)
				}
				want(t, fs.RemoveXattr(bg, Root, ino, xattr.Capability), ErrNoAttr)
				if err := f.Sync(bg); err != nil && !errors.Is(err, ErrStale) {
					t.Fatal(err)
				}
				want(t, capability(), ErrNoAttr)
				if name != "PUT" { // which replaces what users set
					_, err := fs.GetXattr(bg, Root, ino, "user.kept")
					want(t, err, nil)
				}
			})
		})
	}
}

// TestSetIDAfterWrite: setuid that is set after a write stays when that is
// flushed (install -m 4755, by an ordinary user).
func TestSetIDAfterWrite(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		user := cred(1001, 1001)
		ino := mustFile(t, fs, RootIno, "f")
		uid, gid, mode := user.UID(), user.GID(), uint32(0o6755)
		_, err := fs.SetAttr(bg, Root, ino, SetAttr{UID: &uid, GID: &gid})
		want(t, err, nil)
		f, err := fs.Open(bg, user, ino, OpenWrite)
		want(t, err, nil)
		_, err = f.WriteAt(bg, []byte("program"), 0)
		want(t, err, nil)
		_, err = fs.SetAttr(bg, user, ino, SetAttr{Mode: &mode})
		want(t, err, nil)
		want(t, f.Close(bg), nil)
		a, err := fs.GetAttr(bg, ino)
		if want(t, err, nil); a.Mode&ModePermMask != mode {
			t.Errorf("mode %o, set was %o", a.Mode&ModePermMask, mode)
		}
	})
}

// TestTruncateEmpty: O_TRUNC of an empty file gives it new times and revokes
// privileges, as open(2) says.
func TestTruncateEmpty(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		user := cred(1001, 1001)
		ino := mustFile(t, fs, RootIno, "f")
		mode, old := uint32(0o4777), TimeNS(1)
		_, err := fs.SetAttr(bg, Root, ino, SetAttr{Mode: &mode, Mtime: &old})
		want(t, err, nil)
		want(t, fs.SetXattr(bg, Root, ino, Xattr{Name: xattr.Capability, Value: []byte("v")}, 0), nil)
		var told recorder
		defer fs.Watch(&told)()
		f, err := fs.Open(bg, user, ino, OpenWrite|OpenTrunc)
		want(t, err, nil)
		want(t, f.Close(bg), nil)
		a, err := fs.GetAttr(bg, ino)
		want(t, err, nil)
		if a.Mtime == old || a.Mode&ModePermMask != 0o777 {
			t.Errorf("mode %o, mtime %v", a.Mode&ModePermMask, a.Mtime)
		}
		_, err = fs.GetXattr(bg, Root, ino, xattr.Capability)
		want(t, err, ErrNoAttr)
		if !slices.Contains(told.inodes, ino) {
			t.Error("watchers were not told")
		}
	})
}
