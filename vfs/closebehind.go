package vfs

import (
	"context"
	"errors"
	"slices"

	"ogw/cluster"
	"ogw/vfs/internal/record"
)

// SaveBehind is for close(2) where closing does not wait for the store: what was written
// is stored by the write-behind, as long as that succeeds and has not too much to do.
// Else it is Sync, or waits for room; it calls waits before that. It returns what was lost
// before. What replaces a content that was cut to nothing, by the open or since, is stored
// at once, though not synced, so that the end of the process does not leave an empty file in
// place of it.
func (f *File) SaveBehind(ctx context.Context, waits func()) error {
	q := &f.fs.behind
	ok, freed := q.open()
	cut := f.of.cut.Load() || f.cut
	if !ok || cut {
		waits()
		ok = ok || freed != nil && q.await(ctx)
	}
	if !ok {
		return f.Sync(ctx)
	}
	if cut {
		f.of.cut.Store(false) // before: who cuts it meanwhile writes again
		if err := f.of.flush(cluster.Relaxed(ctx)); err != nil {
			f.of.cut.Store(true)
			return err
		}
	}
	return f.lostBefore()
}

// lostBefore returns, once, why what was written through the File is lost.
func (f *File) lostBefore() error {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	err := f.of.lostSince(f.seen)
	f.seen = f.of.lostSeq
	if !f.wrote {
		return nil
	}
	return err
}

// CloseBehind is Close where nobody waits for what was written to be stored. The file
// stays open in this process until it is. It waits for room, and is Close if there is none
// because the store takes nothing: who closes learns that from SaveBehind.
func (f *File) CloseBehind(ctx context.Context) error {
	if f.closed.Swap(true) {
		return ErrBadHandle
	}
	for f.isUnsaved() {
		if f.fs.behind.add(f) {
			return nil
		}
		if !f.fs.behind.await(ctx) {
			break
		}
	}
	return f.end(ctx)
}

// storeAgain are the failures that may be over soon.
var storeAgain = []error{ErrNoSpace, ErrReadOnly, ErrUnavailable, ErrIO, ErrConflict, ErrClosed, context.Canceled, context.DeadlineExceeded}

// storeBehind implements behindFile.
func (f *File) storeBehind(ctx context.Context) error {
	err := f.of.flush(ctx)
	if slices.ContainsFunc(storeAgain, func(e error) bool { return errors.Is(err, e) }) {
		if f.removed(ctx) {
			return nil
		}
		return err
	}
	if lost := f.lostBefore(); err == nil {
		err = lost
	}
	f.logLost(ctx, err)
	return nil
}

// removed reports whether nobody can come to what was written any more: the file has no
// name, and who has it open has its bytes, too.
func (f *File) removed(ctx context.Context) bool {
	if f.fs.session.Open.Held(f.of.ino) { // it may get one
		return false
	}
	var n *record.Inode
	err := f.fs.peek(ctx, func(r cluster.Reader) (err error) {
		n, err = record.GetInode(r, f.of.ino)
		return err
	})
	return err == nil && n.Nlink == 0
}

// endBehind implements behindFile. What a Keeper has stays with it: the next process
// stores it.
func (f *File) endBehind(ctx context.Context, err error) {
	f.of.mu.RLock()
	kept := err != nil && len(f.of.kept) > 0
	f.of.mu.RUnlock()
	if kept {
		return
	}
	f.logLost(ctx, err)
	f.release(ctx)
}

// logLost reports that what was written to a closed file is lost.
func (f *File) logLost(ctx context.Context, why error) {
	if why == nil {
		return
	}
	key, _ := f.fs.KeyOf(ctx, f.of.ino) // "" where it has no name any more
	f.fs.log.Error("what was written to a closed file is lost", "inode", uint64(f.of.ino), "path", key, "err", why)
}

// StoreClosed makes what was written to closed files durable.
func (fs *FS) StoreClosed(ctx context.Context) error {
	if err := fs.behind.pass(ctx); err != nil {
		return err
	}
	return fs.syncRelaxed(ctx)
}
