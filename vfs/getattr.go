package vfs

import (
	"context"

	"ogw/cluster"
	"ogw/vfs/internal/accesstime"
	"ogw/vfs/internal/attrcache"
	"ogw/vfs/internal/feed"
)

// TryAttr is GetAttr for who must not wait: ok reports whether the answer is
// known without asking the store.
func (fs *FS) TryAttr(ino Ino) (a Attr, ok bool) {
	e := fs.attrs.Get(ino)
	if e == nil {
		return Attr{}, false
	}
	a, err := fs.attrWith(e.Inode, e.DirTime)
	// What is not flushed stands in the open file, and moves to the store
	// while the clock runs.
	return a, err == nil && fs.attrs.Get(ino) == e
}

// attrFor returns the attributes of an inode; ErrStale.
func (fs *FS) attrFor(ctx context.Context, ino Ino) (a Attr, err error) {
	if a, ok := fs.TryAttr(ino); ok {
		return a, nil
	}
	for mark := fs.session.Open.Mark(); ; mark = fs.session.Open.Mark() {
		a, err = fs.readAttr(ctx, ino)
		if err != nil || !fs.session.Open.LeftSince(mark, ino) {
			return a, err
		}
	}
}

// readAttr is attrFor by one snapshot; what was flushed and closed meanwhile
// may be missing.
func (fs *FS) readAttr(ctx context.Context, ino Ino) (a Attr, err error) {
	ctx = fs.durably(ctx)
	stamp := fs.attrs.Clock.Stamp()
	var e *attrcache.Entry
	err = fs.peek(ctx, func(r cluster.Reader) error {
		n, dirTime, err := getInodeAndTime(r, ino, true)
		if err != nil {
			return err
		}
		if n == nil {
			return ErrStale
		}
		if n.Nlink == 0 {
			if err := fs.mayUse(n, fs.session.Open.Used(ino)); err != nil {
				return err
			}
		}
		e = &attrcache.Entry{Inode: n, DirTime: dirTime, Stamp: stamp}
		a, err = fs.attrWith(n, dirTime)
		return err
	})
	// What a relaxed reader saw may not be durable yet.
	if err == nil && fs.attrs.Clock != nil && !cluster.IsRelaxed(ctx) {
		fs.attrs.Put(e)
	}
	return a, err
}

// Accessed notes a read of ino, whatever kind it is, as relatime says (mount(8)).
// It reports whether it moved the time, which is shown by every door then, and
// stored later.
func (fs *FS) Accessed(ctx context.Context, ino Ino) (moved bool) {
	if fs.cfg.NoAtime {
		return false
	}
	a, err := fs.attrFor(ctx, ino)
	if err != nil || a.Flags&FlagNoAtime != 0 {
		return false
	}
	now, shown := fs.cfg.Now().UnixNano(), a.Atime.UnixNS()
	if !accesstime.Due(shown, a.Mtime.UnixNS(), a.CtimeNS, now) || !fs.reads.Note(uint64(ino), shown, now) {
		return false
	}
	fs.feed.Notify(ctx, feed.Event{Ino: ino})
	return true
}
