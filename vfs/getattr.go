package vfs

import (
	"context"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/accesstime"
	"ogw/vfs/internal/attrcache"
	"ogw/vfs/internal/feed"
	"ogw/vfs/internal/perm"
	"ogw/vfs/internal/record"
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

// Refresh returns the attributes as they are now. What is read through the File after
// it is at least as new, whichever process changed the file. storedNS is the time of the
// last change that is stored: what was learned of rights under another one may not hold.
func (f *File) Refresh(ctx context.Context) (a Attr, storedNS int64, err error) {
	if f.fs.feed.Complete() {
		a, err = f.Attr(ctx)
		return a, a.CtimeNS, err
	}
	return f.of.refresh(ctx)
}

// checkOpen is for opening n by who may.
func checkOpen(n *record.Inode, flags OpenFlags) error {
	switch {
	case flags&(OpenFlagged|OpenRewrites) != 0:
		return nil
	case flags&(OpenTrunc|OpenAnywhere) != 0:
		return perm.FlagsOf(n).CheckFree()
	case flags&OpenWrite != 0:
		return perm.FlagsOf(n).CheckWritable()
	}
	return nil
}

// opens checks whether n can be opened by who may, and notes what it is like.
func (f *File) opens(n *record.Inode) error {
	if err := checkOpen(n, f.flags); err != nil || f.fs.feed.Complete() {
		return err
	}
	a, err := f.fs.attrWith(n, nil)
	f.shown = &a
	return err
}

// Opened returns the attributes that the file had when it was opened, or later ones.
func (f *File) Opened(ctx context.Context) (Attr, error) {
	if f.shown != nil {
		return *f.shown, nil
	}
	return f.Attr(ctx)
}

// renew is Refresh before each read and write, where the user of the File does not.
func (f *File) renew(ctx context.Context) (err error) {
	if f.flags&OpenRefreshes == 0 && !f.fs.feed.Complete() {
		_, _, err = f.of.refresh(ctx)
	}
	return err
}

// refresh reads the inode, and has what is read from now on be as new, where other
// processes may change the file. A snapshot of the same version is as good as a new one.
func (of *openFile) refresh(ctx context.Context) (a Attr, storedNS int64, err error) {
	at := time.Now()
	var n *record.Inode
	err = of.fs.peek(ctx, func(r cluster.Reader) (err error) {
		if n, err = record.GetInode(r, of.ino); err == nil {
			a, err = of.fs.attrWith(n, nil)
		}
		return err
	})
	if err != nil {
		return a, 0, err
	}
	of.saw(n, at)
	return a, n.CtimeNS, nil
}

// saw notes that somebody was told of n, which was read after a time.
func (of *openFile) saw(n *record.Inode, at time.Time) {
	of.mu.Lock()
	defer of.mu.Unlock()
	of.least = max(of.least, n.Version)
	if s := of.snap; s != nil && s.inode.Version == n.Version && s.at.Before(at) {
		s.inode, s.at = n, at // with the flags that it has now
	}
}

// lostShift has what was lost show in Attr.Others apart from versions, and unsureOthers what is
// like nothing else.
const (
	lostShift    = 40
	unsureOthers = 1 << 63
)

// overlay adds what was not flushed to attributes of the inode, unless it was written to a
// content before the one with a number.
func (of *openFile) overlay(a *Attr, epoch uint64) {
	of.mu.RLock()
	defer of.mu.RUnlock()
	if l := of.last; l != nil {
		if a.Version < l.Version { // a snapshot from before our flush, which has no pieces any more
			a.Size, a.Used, a.Version, a.Mode = l.Size, l.Used, l.Version, l.Mode
			a.Mtime, a.CtimeNS = l.Mtime, max(l.CtimeNS, a.CtimeNS)
		}
	}
	unsure := false
	if len(of.pieces) > 0 && of.epoch >= epoch {
		unsure = of.overlayWrites(a)
	}
	switch {
	case of.fs.feed.Complete():
	case unsure:
		a.Others = unsureOthers | of.unsure.Add(1)
	default:
		a.Others = a.Version - of.turn + of.lostSeq<<lostShift
	}
}

// overlayWrites is overlay where there are pieces. unsure reports whether a may have those of the flush
// that runs, or another process was faster. Under mu.
func (of *openFile) overlayWrites(a *Attr) (unsure bool) {
	writes, base, stored := of.writes, of.base, false
	m := of.committing.Load()
	if m != nil && a.Version >= m.version {
		stored = of.fs.feed.Complete() || m.left(a)
		unsure = !stored
	}
	if stored { // the snapshot has them already
		writes -= of.captured
		base = m.version
	}
	a.Size = max(a.Size, of.pieces.end())
	a.Version += writes
	ns := of.mtimeNS
	if !of.fs.feed.Complete() {
		ns = shownNS(ns, a.CtimeNS, a.Version, base)
	}
	if !of.times.keep(of.turn, a.CtimeNS) {
		a.Mtime, a.CtimeNS = TimeNS(ns), max(a.CtimeNS, ns)
	}
	for _, p := range of.pieces {
		if !stored || !p.captured {
			a.Used += p.len
		}
	}
	if of.killPriv {
		a.Mode = perm.DropSetID(a.Mode)
	}
	return unsure
}
