package fusemount

import (
	"context"
	"errors"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"ogw/cluster"
	"ogw/vfs"
)

// OpenDir begins a listing.
func (f *rawFS) OpenDir(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	ino := f.ino(in.NodeId)
	if fh, done := f.surv.opened(&in.InHeader); done {
		out.Fh = fh
		return fuse.OK
	}
	l, round, flags := f.listings.open(ino, f.primary.Load())
	fh, err := f.dirs.add(&dirHandle{listing: l, round: round, from: f.fs.OpenDirStream(ino)}, uint64(ino), 0, in.Unique&^resentBit)
	if err != nil {
		f.listings.close(l)
		return f.status("opendir", &in.InHeader, err)
	}
	out.Fh, out.OpenFlags = fh, flags
	return fuse.OK
}

// ReleaseDir ends a listing.
func (f *rawFS) ReleaseDir(in *fuse.ReleaseIn) {
	if d := f.dirs.remove(in.Fh); d != nil {
		f.dirs.forget(in.Fh)
		f.listings.close(d.listing)
	}
}

// FsyncDir makes changes of names durable.
func (f *rawFS) FsyncDir(cancel <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	ctx := f.request(cancel, &in.InHeader)
	defer ctx.end()
	return f.status("fsyncdir", &in.InHeader, f.fs.SyncInode(ctx, f.ino(in.NodeId)))
}

// ReadDir lists names.
func (f *rawFS) ReadDir(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return f.readDir(cancel, in, out, false)
}

// ReadDirPlus lists names with attributes, which the kernel keeps as if it
// had looked them up.
func (f *rawFS) ReadDirPlus(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return f.readDir(cancel, in, out, true)
}

func (f *rawFS) readDir(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList, plus bool) fuse.Status {
	ctx := f.request(cancel, &in.InHeader)
	defer ctx.end()
	d := f.dirs.get(in.Fh)
	if d == nil {
		return fuse.EBADF
	}
	d.reads.Lock()
	defer d.reads.Unlock()
	d.reading(d.round)
	added := false
	at := f.moment()
	prev := in.Offset
	if prev == 0 {
		prev = d.begin(f.fs.Changes(d.ino))
	}
	var err error
	after, known := d.position(prev)
	if !known {
		after, err = f.findPosition(d, cred(&in.InHeader), prev)
	}
	if err == nil && indexOf(prev) < offDotDot {
		err = f.addDots(ctx, d, prev, out, plus)
		prev = atIndex(prev, offDotDot)
	}
	if err == nil {
		err = d.from.Read(ctx, cred(&in.InHeader), after, plus, func(e *vfs.DirEntry) error {
			off := d.number(prev, e.Pos)
			if !f.addEntry(e, off, out, plus, at) {
				return cluster.ErrStop
			}
			prev, added = off, true
			return nil
		})
	}
	if in.Offset == 0 && in.Flags&unix.O_NOATIME == 0 && !f.quietDirs.Load() {
		f.fs.Accessed(ctx, d.ino)
	}
	switch {
	case errors.Is(err, cluster.ErrStop), added:
		// The kernel knows what was added from now on: an error has to come
		// with the next request.
		return fuse.OK
	case errors.Is(err, vfs.ErrStale):
		return enoent
	}
	return f.status("readdir", &in.InHeader, err)
}

// findPosition returns where a listing goes on of which that is not remembered: of the server
// before, or of a pass that was forgotten. It counts entries: if the directory is as it was, that
// is where the listing left off; else, as always, what came or went concurrently is seen or
// not. At its end, nothing follows.
func (f *rawFS) findPosition(d *dirHandle, c *vfs.Cred, offset uint64) (string, error) {
	i, last := offDotDot, ""
	err := d.from.Read(f.ctx, c, "", false, func(e *vfs.DirEntry) error {
		if i >= indexOf(offset) {
			return cluster.ErrStop
		}
		i, last = i+1, e.Pos
		return nil
	})
	if errors.Is(err, cluster.ErrStop) {
		err = nil
	}
	return last, err
}

// addDots lists "." and "..".
func (f *rawFS) addDots(ctx context.Context, d *dirHandle, offset uint64, out *fuse.DirEntryList, plus bool) error {
	a, err := f.fs.GetAttr(ctx, d.ino)
	if err != nil {
		return err
	}
	parent := a.Parent
	if d.ino == f.opt.Root {
		parent = d.ino
	}
	for _, e := range [...]fuse.DirEntry{
		{Name: ".", Ino: uint64(d.ino), Mode: vfs.ModeDirectory, Off: atIndex(offset, offDot)},
		{Name: "..", Ino: uint64(parent), Mode: vfs.ModeDirectory, Off: atIndex(offset, offDotDot)},
	} {
		if e.Off <= offset {
			continue
		}
		if plus {
			if out.AddDirLookupEntry(e) == nil {
				return cluster.ErrStop
			}
		} else if !out.AddDirEntry(e) {
			return cluster.ErrStop
		}
	}
	return nil
}

func (f *rawFS) addEntry(e *vfs.DirEntry, off uint64, out *fuse.DirEntryList, plus bool, at moment) bool {
	de := fuse.DirEntry{Name: e.Name, Ino: uint64(e.Ino), Mode: e.Mode, Off: off}
	if !plus {
		return out.AddDirEntry(de)
	}
	entry := out.AddDirLookupEntry(de)
	if entry == nil {
		return false
	}
	// With node 0, the kernel looks the name up when it needs it.
	if e.Attr != nil && f.fillEntry(e.Attr, entry, at) != nil {
		*entry = fuse.EntryOut{}
	}
	return true
}
