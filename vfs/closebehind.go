package vfs

import (
	"context"
	"errors"
	"slices"

	"ogw/cluster"
)

// SaveBehind is for close(2) where closing does not wait for the store: what was written
// is stored by the write-behind, as long as that succeeds and has not too much to do.
// Else it is Sync, or waits for room; it calls waits before that. It returns what was lost
// before. What replaces a content that the open cut is stored at once, though not synced,
// so that the end of the process does not leave an empty file in place of it.
func (f *File) SaveBehind(ctx context.Context, waits func()) error {
	q := &f.fs.behind
	ok, freed := q.open()
	if !ok || f.cut {
		waits()
		ok = ok || freed != nil && q.await(ctx)
	}
	if !ok {
		return f.Sync(ctx)
	}
	if f.cut {
		if err := f.of.flush(cluster.Relaxed(ctx)); err != nil {
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
// stays open in this process until it is.
func (f *File) CloseBehind(ctx context.Context) error {
	f.of.mu.RLock()
	unsaved := f.unsaved
	f.of.mu.RUnlock()
	if !unsaved || !f.fs.behind.serves.Load() {
		return f.Close(ctx)
	}
	if f.closed.Swap(true) {
		return ErrBadHandle
	}
	f.fs.behind.add(f)
	return nil
}

// storeAgain are the failures that may be over soon.
var storeAgain = []error{ErrNoSpace, ErrReadOnly, ErrUnavailable, ErrIO, ErrConflict, ErrClosed, context.Canceled, context.DeadlineExceeded}

// storeBehind implements behindFile.
func (f *File) storeBehind(ctx context.Context) error {
	err := f.of.flush(ctx)
	if slices.ContainsFunc(storeAgain, func(e error) bool { return errors.Is(err, e) }) {
		return err
	}
	if lost := f.lostBefore(); err == nil {
		err = lost
	}
	f.logLost(ctx, err)
	return nil
}

// endBehind implements behindFile.
func (f *File) endBehind(ctx context.Context, err error) {
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
