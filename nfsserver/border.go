package nfsserver

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"ogw/vfs"
)

// border keeps clients inside the exports that they mounted. An export is
// what lies below its path at the time of a call: a directory that is made
// anew is another root, and what was renamed out of it, through any door, is
// out. An export of the whole namespace has no border and costs nothing.
//
// What a call asks is answered from memory as long as no directory is renamed
// (vfs.MoveStamp). Then each directory in use is looked up once more, by a
// walk to the root; so is a file that is remembered, when it is moved.
type border struct {
	fs tree
	// inside are directories that were found in an export's; where other
	// processes may change the store, files too.
	inside [insideSlots]atomic.Pointer[insider]
}

// tree is what the border needs of a vfs.FS: where an inode lies, and whether
// that may have changed.
type tree interface {
	ResolveExact(ctx context.Context, cred *vfs.Cred, path string) (vfs.Attr, error)
	ResolveBelow(ctx context.Context, cred *vfs.Cred, root vfs.Ino, path string, follow bool) (vfs.Attr, error)
	IsBelow(ctx context.Context, top, ino vfs.Ino) (below bool, err error)
	GetAttr(ctx context.Context, ino vfs.Ino) (vfs.Attr, error)
	TryAttr(ino vfs.Ino) (a vfs.Attr, ok bool)
	MoveStamp() vfs.MoveStamp
	MoveStampOf(ino vfs.Ino) vfs.MoveStamp
	Unmoved(s vfs.MoveStamp) bool
	Exclusive() bool
}

// insideSlots is how many inodes are remembered, about 64 bytes each; two that
// share a slot displace each other.
const insideSlots = 4096

// insider says that ino lay below top, and does as long as nothing moved since.
// It is immutable.
type insider struct {
	top, ino vfs.Ino
	since    vfs.MoveStamp
}

// root returns the directory of an export; ErrStale if there is none now, as
// its handles then are.
func (b *border) root(ctx context.Context, x *export) (vfs.Ino, error) {
	if ino, ok := b.knownRoot(x); ok {
		return ino, nil
	}
	if r := x.root.Load(); r != nil && b.fs.Unmoved(r.since) {
		if a, err := b.fs.GetAttr(ctx, r.ino); !removed(&a, err) {
			return r.ino, err
		}
	}
	a, err := b.findRoot(ctx, x)
	if errors.Is(err, vfs.ErrNotExist) || errors.Is(err, vfs.ErrNotDir) {
		err = ErrStale
	}
	return a.Ino, err
}

// removed reports whether a, or the error of reading it, is that of an inode without links.
func removed(a *vfs.Attr, err error) bool {
	return errors.Is(err, vfs.ErrStale) || err == nil && a.Nlink == 0
}

// knownRoot is root from memory. A directory that has not moved is still the
// one at the path unless it was removed.
func (b *border) knownRoot(x *export) (vfs.Ino, bool) {
	if x.whole() {
		return vfs.RootIno, true
	}
	r := x.root.Load()
	if r == nil || !b.fs.Unmoved(r.since) {
		return 0, false
	}
	if b.fs.Exclusive() {
		if a, ok := b.fs.TryAttr(r.ino); !ok || a.Nlink == 0 {
			return 0, false
		}
	}
	return r.ino, true
}

// findRoot looks for the export's directory. No symbolic link leads there:
// who may make one in the way would choose what is exported.
func (b *border) findRoot(ctx context.Context, x *export) (vfs.Attr, error) {
	since := b.fs.MoveStamp()
	a, err := b.fs.ResolveExact(ctx, vfs.Root, x.Path)
	if err != nil {
		return a, err
	}
	if !a.IsDir() {
		return a, ErrNotDir
	}
	x.root.Store(&exportRoot{a.Ino, since})
	return a, nil
}

// resolve finds the directory that a client mounts: dir is the export's path
// or a path below it. Links on the way below are followed as in a chroot to
// the export, so that they lead no further than LOOKUP does.
func (b *border) resolve(ctx context.Context, x *export, dir string) (vfs.Attr, error) {
	a, err := b.findRoot(ctx, x)
	rest := strings.TrimPrefix(dir, x.Path)
	if err != nil || rest == "" {
		return a, err
	}
	return b.fs.ResolveBelow(ctx, vfs.Root, a.Ino, rest, true)
}

// check returns ErrStale for an inode that does not lie in the export now.
func (b *border) check(ctx context.Context, x *export, ino vfs.Ino) error {
	if x.whole() {
		return nil
	}
	top, err := b.root(ctx, x)
	if err != nil || ino == top || b.remembers(top, ino) {
		return err
	}
	var below bool
	if b.fs.Exclusive() {
		below, err = b.belowByAttr(ctx, top, ino)
	} else {
		below, err = b.below(ctx, top, ino)
	}
	if err == nil && !below || errors.Is(err, vfs.ErrNotExist) { // of directories that were removed
		err = ErrStale
	}
	return err
}

// knows is check from memory, for a file or directory with these attributes.
func (b *border) knows(x *export, a *vfs.Attr) bool {
	if x.whole() {
		return true
	}
	top, ok := b.knownRoot(x)
	if !ok {
		return false
	}
	if !a.IsDir() && b.fs.Exclusive() {
		return a.Parent == top || b.remembers(top, a.Parent)
	}
	return a.Ino == top || b.remembers(top, a.Ino)
}

// belowByAttr asks for a file's directory, which is known more often than the
// file: its place is among the attributes, and these are remembered exactly.
func (b *border) belowByAttr(ctx context.Context, top, ino vfs.Ino) (bool, error) {
	a, err := b.fs.GetAttr(ctx, ino)
	if err != nil {
		return false, err
	}
	if a.IsDir() {
		return b.below(ctx, top, ino)
	}
	if a.Parent == top || b.remembers(top, a.Parent) {
		return true, nil
	}
	below, err := b.below(ctx, top, a.Parent)
	if errors.Is(err, vfs.ErrStale) {
		err = nil // an open file of a directory that is gone
	}
	if below || err != nil || a.Nlink <= 1 {
		return below, err
	}
	return b.fs.IsBelow(ctx, top, ino) // by another of its links
}

// below walks up from ino, and remembers that it came by top.
func (b *border) below(ctx context.Context, top, ino vfs.Ino) (bool, error) {
	since := b.fs.MoveStampOf(ino)
	below, err := b.fs.IsBelow(ctx, top, ino)
	if below {
		b.inside[ino%insideSlots].Store(&insider{top, ino, since})
	}
	return below, err
}

func (b *border) remembers(top, ino vfs.Ino) bool {
	i := b.inside[ino%insideSlots].Load()
	return i != nil && i.ino == ino && i.top == top && b.fs.Unmoved(i.since)
}
