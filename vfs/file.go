package vfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/feed"
	"ogw/vfs/internal/perm"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/xattr"
)

// File is an open file. All Files of one inode in this process share one
// view of its bytes, unflushed writes included. Safe for concurrent use.
type File struct {
	fs       *FS
	of       *openFile
	flags    OpenFlags
	killPriv bool // its writes take setuid and setgid off the file
	keeper   Keeper
	again    keptMark      // of the write that Rewrite makes, by one goroutine
	before   *record.Inode // as it was before Rewrite

	closed atomic.Bool
	shown  *Attr // as it was opened, where others may change it; else nil
	cut    bool  // a content that there was, when it was opened

	// Under openFile.mu:
	wrote   bool
	epoch   uint64 // of the inode, when this File first wrote
	seen    uint64 // of openFile.lostSeq
	last    uint64 // the openFile.turn of its last write
	unsaved bool   // changed bytes or size since its last Sync
}

// Open opens a regular file. ErrIsDir, ErrInvalid for other types, ErrAccess,
// ErrStale.
func (fs *FS) Open(ctx context.Context, cred *Cred, ino Ino, flags OpenFlags) (*File, error) {
	var mask uint32
	if flags&OpenRead != 0 {
		mask |= AccessRead
	}
	if flags&(OpenWrite|OpenTrunc) != 0 && flags&(OpenFlagged|OpenRewrites) == 0 {
		mask |= AccessWrite
	}
	if mask != 0 && !cred.Unchecked() {
		if err := fs.Access(ctx, cred, ino, mask); err != nil {
			return nil, err
		}
	}
	return fs.openInode(ctx, cred, ino, flags)
}

// openInode opens a regular file without asking for permission: what Open
// and Create do after they did.
func (fs *FS) openInode(ctx context.Context, cred *Cred, ino Ino, flags OpenFlags) (*File, error) {
	of, err := fs.acquire(ctx, ino)
	if err != nil {
		return nil, err
	}
	f := &File{fs: fs, of: of, flags: flags, killPriv: !cred.Superuser()}
	at := time.Now()
	var n *record.Inode
	err = fs.peek(ctx, func(r cluster.Reader) (err error) {
		n, err = record.GetInode(r, ino)
		switch {
		case err != nil:
			return err
		case n.IsDir():
			return ErrIsDir
		case !n.IsRegular():
			return fmt.Errorf("%w: inode %d is not a regular file", ErrInvalid, ino)
		}
		if err := fs.mayUse(n, of.admitted.Load() || n.Nlink == 0 && fs.session.Open.Held(ino)); err != nil {
			return err
		}
		return f.opens(n)
	})
	if err == nil {
		of.admitted.Store(true)
	}
	if err == nil && flags&OpenTrunc != 0 {
		err = f.truncate(ctx)
	}
	if err != nil {
		f.release(ctx)
		return nil, err
	}
	of.mu.Lock()
	f.seen = of.lostSeq
	of.mu.Unlock()
	if !fs.feed.Complete() { // what other processes did is seen from the open on
		of.saw(n, at)
	}
	return f, nil
}

// truncate is O_TRUNC. What was empty gets new times, which Close does not make
// durable.
func (f *File) truncate(ctx context.Context) error {
	cut := false
	err := f.changeBy(ctx, f.fs.updateEmptied, func(t cluster.Txn, o *op, n *record.Inode, id ContentID) error {
		if err := perm.FlagsOf(n).CheckFree(); err != nil {
			return err
		}
		cut = n.Size != 0
		return o.contents.Truncate(t, n, 0, id)
	})
	if f.cut = cut; cut {
		f.markUnsaved()
	}
	return err
}

// markUnsaved leaves something to make durable to Close.
func (f *File) markUnsaved() {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	f.unsaved = true
}

// change runs one transaction over the flushed inode, which it stores with new
// times and without privileges, as the kernel's file_modified does.
func (f *File) change(ctx context.Context, fn fileChange) error {
	if err := f.fs.flushInode(ctx, f.of.ino); err != nil {
		return err
	}
	return f.changeBy(ctx, f.fs.updateFile, fn)
}

// changeEnd is change for what moves the end of the file (updateEnd).
func (f *File) changeEnd(ctx context.Context, fn fileChange) error {
	return f.changeBy(ctx, f.fs.updateEnd, fn)
}

// fileChange changes n within a transaction; id is an unused number.
type fileChange func(t cluster.Txn, o *op, n *record.Inode, id ContentID) error

func (f *File) changeBy(ctx context.Context, update func(context.Context, Ino, func(cluster.Txn, *op) error) error, fn fileChange) error {
	id, err := f.fs.ids.Take(ctx)
	if err != nil {
		return err
	}
	return update(ctx, f.of.ino, func(t cluster.Txn, o *op) error {
		n, err := record.GetInode(t, f.of.ino)
		if err != nil {
			return err
		}
		if err := perm.FlagsOf(n).CheckWritable(); err != nil {
			return err
		}
		version := n.Version
		if err := fn(t, o, n, ContentID(id)); err != nil {
			return err
		}
		if n.Version == version {
			o.feed.InodeChanged(n.Ino, false)
		}
		n.Mtime, n.CtimeNS = TimeNS(o.nowNS), o.nowNS
		if f.killPriv {
			n.Mode = perm.DropSetID(n.Mode)
		}
		if err := xattr.DropCapability(t, n); err != nil {
			return err
		}
		return record.PutInode(t, n)
	})
}

// Ino returns the inode number.
func (f *File) Ino() Ino { return f.of.ino }

// Attr returns the attributes, unflushed writes included.
func (f *File) Attr(ctx context.Context) (a Attr, err error) { return f.fs.attrFor(ctx, f.of.ino) }

// ReadAt reads like io.ReaderAt: io.EOF at the end of the file.
func (f *File) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if f.flags&OpenRead == 0 || f.closed.Load() {
		return 0, ErrBadHandle
	}
	if err := f.renew(ctx); err != nil {
		return 0, err
	}
	return f.of.read(ctx, p, off)
}

// Splice puts up to n bytes at off into a pipe, as Object.Splice does: what is stored,
// and not being changed, as it was at one moment.
func (f *File) Splice(ctx context.Context, w int, off, n int64) (int64, error) {
	if f.flags&OpenRead == 0 || f.closed.Load() {
		return 0, ErrBadHandle
	}
	if err := f.renew(ctx); err != nil {
		return 0, err
	}
	return f.of.splice(ctx, w, off, n)
}

// Accessed is FS.Accessed after a read. It costs next to nothing where nothing
// changed since the last.
func (f *File) Accessed(ctx context.Context) (moved bool) {
	turn := f.fs.reads.Turn()
	if f.of.readIn.Load() == turn {
		return false
	}
	f.of.readIn.Store(turn) // before: a change from here on is seen
	return f.fs.Accessed(ctx, f.of.ino)
}

// WriteAt writes p at off (at the end with OpenAppend). It is visible to
// every door of this process when it returns, and durable after Sync, Close,
// or at once with OpenSync. p may be reused afterwards.
func (f *File) WriteAt(ctx context.Context, p []byte, off int64) (int, error) {
	if err := f.renew(ctx); err != nil {
		return 0, err
	}
	_, n, err := f.write(ctx, oneWrite{p, off, f.flags&OpenAppend != 0, f.killPriv})
	return n, err
}

// WriteAtFor is WriteAt on behalf of cred, through a File that several users
// share: setuid and setgid go from the file as if cred had opened it.
func (f *File) WriteAtFor(ctx context.Context, cred *Cred, p []byte, off int64) (int, error) {
	if err := f.renew(ctx); err != nil {
		return 0, err
	}
	if err := f.dropSetGID(ctx, cred); err != nil {
		return 0, err
	}
	_, n, err := f.write(ctx, oneWrite{p, off, f.flags&OpenAppend != 0, !cred.Superuser()})
	return n, err
}

// dropSetGID is for a write by cred: what else it takes off the file goes with
// its bytes, whoever writes them.
func (f *File) dropSetGID(ctx context.Context, cred *Cred) error {
	if cred.Rooted() {
		return nil
	}
	n, err := f.of.stored(ctx)
	if err != nil || !losesSetGID(cred, n) {
		return err
	}
	_, err = f.fs.SetAttr(ctx, Root, f.of.ino, SetAttr{DropSetID: ModeSetGID})
	return err
}

// Append writes p at the end and returns where that was.
func (f *File) Append(ctx context.Context, p []byte) (off int64, err error) {
	if err := f.renew(ctx); err != nil {
		return 0, err
	}
	off, _, err = f.write(ctx, oneWrite{p: p, atEnd: true, killPriv: f.killPriv})
	return off, err
}

func (f *File) write(ctx context.Context, w oneWrite) (at int64, n int, err error) {
	if f.flags&OpenWrite == 0 || f.closed.Load() {
		return w.off, 0, ErrBadHandle
	}
	if w.off < 0 {
		return w.off, 0, fmt.Errorf("%w: offset %d", ErrInvalid, w.off)
	}
	if f.keeper != nil {
		done, err := f.keeper.Reserve(ctx, len(w.p))
		if err != nil {
			return w.off, 0, err
		}
		defer done()
	}
	if w.atEnd && !f.fs.feed.Complete() {
		at, n, err = f.appendBeside(ctx, w)
	} else {
		at, n, err = f.of.write(ctx, f, w)
	}
	if errors.Is(err, perm.ErrOverwrite) {
		n, err = f.extend(ctx, w.p, w.off, w.killPriv)
	}
	if n > 0 {
		f.fs.feed.Notify(ctx, feed.Event{Ino: f.of.ino, Data: true})
	}
	return at, n, f.stable(ctx, err)
}

// stable makes durable, with OpenSync, what was changed if err is nil.
func (f *File) stable(ctx context.Context, err error) error {
	if err != nil || f.flags&OpenSync == 0 {
		return err
	}
	return f.Sync(ctx)
}

// extend is a write to an append-only file that begins before its end. Bytes that
// the file has already are no change: so those append who write whole pages or
// send a write again.
func (f *File) extend(ctx context.Context, p []byte, off int64, killPriv bool) (int, error) {
	have := make([]byte, len(p))
	k, err := f.of.read(ctx, have, off)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return 0, err
	case !bytes.Equal(have[:k], p[:k]):
		return 0, perm.ErrOverwrite
	case k == len(p):
		return k, nil
	}
	_, n, err := f.of.write(ctx, f, oneWrite{p: p[k:], off: off + int64(k), killPriv: killPriv})
	return k + n, err
}

// Sync makes all writes to the file durable and visible to other processes
// (fsync, NFS COMMIT). An error of a write behind is reported once to each
// File that was open then. ErrStale if the content was replaced meanwhile.
func (f *File) Sync(ctx context.Context) error {
	ctx = cluster.Strict(ctx)
	unsaved := f.isUnsaved()
	if err := f.save(ctx); err != nil {
		return err
	}
	err := f.fs.syncRelaxed(ctx)
	if err != nil && unsaved { // the next one, or Close, has to
		f.of.mu.Lock()
		f.unsaved = true
		f.of.mu.Unlock()
	}
	return err
}

// save flushes and returns what was lost before.
func (f *File) save(ctx context.Context) error {
	err := f.of.flush(cluster.Strict(ctx))
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	if e := f.of.lostSince(f.seen); e != nil {
		f.seen = f.of.lostSeq
		if err == nil && f.wrote {
			err = e
		}
	}
	if err == nil && f.last <= f.of.flushed { // else it was written to meanwhile
		f.unsaved = false
	}
	return err
}

// Close does what Sync does, if bytes or size were changed through the File
// since (written, copied, allocated, cut when it was opened), and closes it,
// also when that fails.
func (f *File) Close(ctx context.Context) error {
	if f.closed.Swap(true) {
		return ErrBadHandle
	}
	return f.end(ctx)
}

// end is Close of a File that nobody else closes.
func (f *File) end(ctx context.Context) (err error) {
	if f.isUnsaved() {
		err = f.Sync(ctx)
	}
	f.release(ctx)
	return err
}

// isUnsaved reports whether bytes or size were changed since the last Sync.
func (f *File) isUnsaved() bool {
	f.of.mu.RLock()
	defer f.of.mu.RUnlock()
	return f.unsaved
}

// release gives up the openFile; the last one drops what could not be
// flushed, and removes the inode if it has no links.
func (f *File) release(ctx context.Context) {
	of := f.of
	last, orphan := f.fs.session.Open.Release(of.ino)
	if !last {
		return
	}
	of.mu.Lock()
	of.dropPieces(ErrIO)
	of.snap.release()
	of.snap = nil
	of.mu.Unlock()
	if !orphan {
		return
	}
	if err := f.fs.closeOrphan(context.WithoutCancel(ctx), of.ino); err != nil && !errors.Is(err, ErrClosed) {
		f.fs.log.Warn("unlinked file is left to the collector", "inode", uint64(of.ino), "err", err)
		f.fs.orphans.Again()
	}
}

// KeepWith has k keep what is written through the File. It comes before the
// first write.
func (f *File) KeepWith(k Keeper) { f.keeper = k }

// Epoch returns the number of the content that the file has, which grows when
// that is replaced; wrote reports whether it is the one that was written through the
// File, which can write to no other.
func (f *File) Epoch(ctx context.Context) (epoch uint64, wrote bool, err error) {
	if err := f.of.rlock(ctx); err != nil {
		return 0, false, err
	}
	defer f.of.mu.RUnlock()
	if f.wrote {
		return f.epoch, true, nil
	}
	return f.of.snap.inode.Epoch, false, nil
}

// Resume makes f, which was opened for that, go on as a File of a process before
// this one, through which the content with this number was written.
func (f *File) Resume(epoch uint64) {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	f.epoch, f.wrote = epoch, true
}
