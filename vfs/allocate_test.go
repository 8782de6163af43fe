package vfs

import "testing"

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
