package vfs

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/tokens"
)

// flush stores all that was written before. It is as durable as ctx asks.
// When it fails the bytes stay, to be tried again, except with ErrStale.
func (of *openFile) flush(ctx context.Context) error {
	of.mu.RLock()
	turn := of.turn
	of.mu.RUnlock()
	return of.flushUpTo(ctx, turn)
}

// syncRelaxed makes the relaxed commits of this process durable, if there
// are any that are not known to be.
func (fs *FS) syncRelaxed(ctx context.Context) error {
	n := fs.commits.Made()
	if fs.commits.Durable(n) {
		return nil
	}
	if err := fs.kv.Sync(ctx); err != nil {
		return fserr.Map(err)
	}
	fs.commits.Mark(n)
	return nil
}

// SyncAll makes everything that was acknowledged durable (syncfs).
func (fs *FS) SyncAll(ctx context.Context) error {
	err := fs.flushAll(cluster.Relaxed(ctx))
	if e := fs.kv.Sync(ctx); err == nil {
		err = fserr.Map(e)
	}
	return err
}

// flushAll flushes every open file and returns the first error. Stale files
// are their writers' business.
func (fs *FS) flushAll(ctx context.Context) error {
	return fs.flushWhere(ctx, func(*openFile) bool { return true })
}

func (fs *FS) flushWhere(ctx context.Context, which func(*openFile) bool) error {
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		first error
	)
	slots := make(chan struct{}, syncParallel)
	fs.eachOpen(func(of *openFile) {
		if !which(of) {
			return
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := of.flush(ctx); err != nil && !errors.Is(err, ErrStale) {
				mu.Lock()
				defer mu.Unlock()
				if first == nil {
					first = err
				}
			}
		})
	})
	wg.Wait()
	return first
}

// dirty reports whether of holds writes older than an age.
func (of *openFile) dirtySince(beforeNS int64) bool {
	of.mu.RLock()
	defer of.mu.RUnlock()
	return len(of.pieces) > 0 && of.dirtyNS != 0 && of.dirtyNS <= beforeNS
}

// SyncInode flushes what this process wrote to ino, if anything (NFS COMMIT
// without an open file).
func (fs *FS) SyncInode(ctx context.Context, ino Ino) error {
	ctx = cluster.Strict(ctx)
	if of := fs.opened(ino); of != nil {
		if err := of.flush(ctx); err != nil {
			return err
		}
	}
	return fs.syncRelaxed(ctx)
}

// Losses counts how often this process dropped writes that it had
// acknowledged and not made durable, because the content was replaced or
// could not be stored at the last close. Each File that had written is told by its
// next Sync.
func (fs *FS) Losses() uint64 { return fs.losses.Load() }

// errUnflushed asks to flush what this process wrote to the inode first.
var errUnflushed = errors.New("inode has unflushed writes")

// flushing is what an operation had flushed for its transaction.
type flushing struct {
	fs   *FS
	done []Ino
	next Ino
}

// lacks reports whether the store lacks what this process wrote to n before the operation. Its
// transaction ends with errUnflushed then.
func (f *flushing) lacks(n *record.Inode) bool {
	if !n.IsRegular() || slices.Contains(f.done, n.Ino) || !f.fs.hasPieces(n.Ino) {
		return false
	}
	f.next = n.Ino
	return true
}

// updateFlushed is update for what needs bytes of some inodes in the store: fn asks
// flushing.lacks, and runs again when they are there.
func (fs *FS) updateFlushed(ctx context.Context, fn func(t cluster.Txn, o *op, f *flushing) error) error {
	token := tokens.Take(ctx)
	for f := (flushing{fs: fs}); ; {
		err := fs.update(tokens.Again(ctx, token), func(t cluster.Txn, o *op) error { return fn(t, o, &f) })
		if !errors.Is(err, errUnflushed) {
			return err
		}
		f.done = append(f.done, f.next)
		if err := fs.flushInode(ctx, f.next); err != nil {
			return err
		}
	}
}

// flushInode stores what this process wrote to ino, if anything, so that a
// transaction that follows sees all that was acknowledged. It comes before
// changes of size and times, and before reading as an object or copying.
// It is as durable as ctx asks. ErrStale is not reported here: the data is
// gone already, and the writers learn of it.
func (fs *FS) flushInode(ctx context.Context, ino Ino) error {
	of := fs.opened(ino)
	if of == nil {
		return nil
	}
	// A Token is for what comes after.
	if err := of.flush(WithToken(ctx, nil)); err != nil && !errors.Is(err, ErrStale) {
		return err
	}
	return nil
}

// contentCommitted comes after a commit that changed what is stored.
func (of *openFile) contentCommitted() {
	of.gen.Add(1)
	of.readIn.Store(0)
}

// contentCommitted notifies ino's open file, if it has one.
func (fs *FS) contentCommitted(ino Ino) {
	if of := fs.opened(ino); of != nil {
		of.contentCommitted()
	}
}

// updateEnd is updateFile for what moves the end of ino, or stores bytes behind it: all that was
// written through Files is stored before, and who writes now waits for the outcome. Else
// bytes that are acknowledged while the transaction commits would be at the end of before.
func (fs *FS) updateEnd(ctx context.Context, ino Ino, fn func(t cluster.Txn, o *op) error) error {
	token := tokens.Take(ctx) // as of updateFile
	return fs.contents.Fit(ctx, ino, func() error {
		if err := fs.flushInode(ctx, ino); err != nil { // the most of it, while others write
			return err
		}
		move := fs.session.Open.BeginMove(ino, func(bool) { fs.contentCommitted(ino) })
		defer move.End()
		if err := fs.flushInode(ctx, ino); err != nil {
			return err
		}
		return fs.update(tokens.Again(ctx, token), func(t cluster.Txn, o *op) error {
			o.move = move
			return fn(t, o)
		})
	})
}

// updateEmptied is updateEnd for what leaves the file without bytes. Where there is no space to
// store what was written before, that goes with the rest: who empties the file that fills the
// store frees it.
func (fs *FS) updateEmptied(ctx context.Context, ino Ino, fn func(t cluster.Txn, o *op) error) error {
	token := tokens.Take(ctx) // for whichever empties the file
	err := fs.updateEnd(tokens.Again(ctx, token), ino, fn)
	if !errors.Is(err, ErrNoSpace) || !fs.hasPieces(ino) {
		return err
	}
	return fs.contents.Fit(ctx, ino, func() error { return fs.emptyUnstored(tokens.Again(ctx, token), ino, fn) })
}

// emptyUnstored is a transaction of updateEmptied beside which no flush runs.
func (fs *FS) emptyUnstored(ctx context.Context, ino Ino, fn func(t cluster.Txn, o *op) error) error {
	var of *openFile
	end := func() {
		if of != nil {
			of.flushMu.Unlock()
			of = nil
		}
	}
	move := fs.session.Open.BeginMove(ino, func(known bool) {
		fs.contentCommitted(ino)
		if of != nil && known {
			of.discard()
		}
		end() // before watchers are notified, as the Move
	})
	defer move.End()
	if of = fs.opened(ino); of != nil {
		of.flushMu.Lock()
		defer end()
	}
	return fs.update(ctx, func(t cluster.Txn, o *op) error {
		o.move = move
		return fn(t, o)
	})
}

// discard forgets what was written and not stored: the file was emptied. Under flushMu.
func (of *openFile) discard() {
	of.mu.Lock()
	of.cutPieces(0, math.MaxInt64)
	of.writes, of.killPriv, of.dirtyNS = 0, false, 0
	of.mu.Unlock()
	of.flushNothing()
}

// hasPieces reports whether this process wrote to the file and did not flush
// all of it yet.
func (fs *FS) hasPieces(ino Ino) bool {
	of := fs.opened(ino)
	if of == nil {
		return false
	}
	of.mu.RLock()
	defer of.mu.RUnlock()
	return len(of.pieces) > 0
}

// overlayAttr adds what this process wrote to the file, whose content has a number, but
// did not flush yet.
func (fs *FS) overlayAttr(a *Attr, epoch uint64) {
	if of := fs.opened(a.Ino); of != nil {
		of.overlay(a, epoch)
	} else if !fs.feed.Complete() {
		a.Others = a.Version
	}
}

// Flush stores what was written to ino, as durably as ctx asks, and notifies nobody
// of what was lost before.
func (fs *FS) Flush(ctx context.Context, ino Ino) error {
	return fs.flushInode(cluster.Relaxed(ctx), ino)
}
