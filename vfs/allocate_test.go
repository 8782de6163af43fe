package vfs

import (
	"bytes"
	"slices"
	"testing"

	"ogw/cluster/mem"
)

// TestAllocateTooMuch: more than is free is refused, and leaves the file alone.
func TestAllocateTooMuch(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		f := mustOpen(t, fs, mustFile(t, fs, RootIno, "f"), OpenRead|OpenWrite)
		defer f.Close(bg)
		s, err := fs.StatFS(bg)
		want(t, err, nil)
		for _, mode := range []AllocMode{0, AllocKeepSize} {
			want(t, f.Allocate(bg, mode, 0, s.TotalBytes+1), ErrNoSpace)
		}
		want(t, f.Allocate(bg, 0, 0, 1<<20), nil)
		if a, err := f.Attr(bg); err != nil || a.Size != 1<<20 {
			t.Errorf("%d bytes, %v", a.Size, err)
		}
		want(t, f.Allocate(bg, AllocPunchHole|AllocKeepSize, 0, s.TotalBytes+1), nil) // takes nothing
	})
}

// TestOpenSync: what was done to a file that is open with OpenSync outlives a power cut, by
// whichever call.
func TestOpenSync(t *testing.T) {
	old, large := bytes.Repeat([]byte{1}, 128<<10), bytes.Repeat([]byte{2}, 128<<10)
	zero := make([]byte, len(old))
	for name, c := range map[string]struct {
		change func(f, src *File) error
		want   []byte
	}{
		"write": {func(f, _ *File) error {
			_, err := f.WriteAt(bg, large[:5], 0)
			return err
		}, slices.Concat(large[:5], old[5:])},
		"copy of little": {func(f, src *File) error {
			_, err := f.CopyRange(bg, 0, src, 0, 5)
			return err
		}, slices.Concat(large[:5], old[5:])},
		"copy of much": {func(f, src *File) error {
			_, err := f.CopyRange(bg, 0, src, 0, int64(len(large)))
			return err
		}, large},
		"hole":    {func(f, _ *File) error { return f.Allocate(bg, AllocPunchHole|AllocKeepSize, 0, int64(len(old))) }, zero},
		"growing": {func(f, _ *File) error { return f.Allocate(bg, 0, 0, int64(len(old))+5) }, slices.Concat(old, zero[:5])},
	} {
		t.Run(name, func(t *testing.T) {
			disk := mem.NewDisk()
			clu := mem.New(mem.Options{Disk: disk})
			fs := openContentTest(t, clu, Config{})
			ino, from := mustFile(t, fs, RootIno, "f"), mustFile(t, fs, RootIno, "source")
			replace(t, fs, ino, old)
			replace(t, fs, from, large)
			f, src := mustOpen(t, fs, ino, OpenRead|OpenWrite|OpenSync), mustOpen(t, fs, from, OpenRead)
			want(t, c.change(f, src), nil)
			clu.KV.(*mem.KV).Abandon()
			disk.PowerCut()
			fs = openContentTest(t, mem.New(mem.Options{Disk: disk}), Config{})
			if got := readAll(t, fs, ino); !bytes.Equal(got, c.want) {
				t.Errorf("%d bytes after the power cut, that begin with %v", len(got), got[:8])
			}
		})
	}
}

// TestRootOwner: a new store's root belongs to whom the configuration names, an
// old one's to whom it did.
func TestRootOwner(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			c := e.open(t)
			fs := openTestWith(t, c, Config{RootUID: 1001, RootGID: 1002})
			for _, cfg := range []Config{{}, {RootUID: 5}} {
				if a, err := fs.GetAttr(bg, RootIno); err != nil || a.UID != 1001 || a.GID != 1002 {
					t.Errorf("owner %d:%d, %v", a.UID, a.GID, err)
				}
				again, err := Open(bg, c, cfg)
				want(t, err, nil)
				if a, err := again.GetAttr(bg, RootIno); err != nil || a.UID != 1001 || a.GID != 1002 {
					t.Errorf("opened again, owner %d:%d, %v", a.UID, a.GID, err)
				}
				want(t, again.Close(bg), nil)
			}
		})
	}
}
