package vfs

import (
	"context"
	"errors"

	"ogw/cluster"
	"ogw/vfs/internal/changeclock"
	"ogw/vfs/internal/fserr"
)

// op is one run of one operation's transaction: what it must do when the
// commit succeeded or failed, and the clock it goes by. It is made anew for
// every attempt.
type op struct {
	fs     *FS
	ctx    context.Context
	nowNS  int64
	events []event
	// unlinking are inodes whose last link this transaction removes; openers
	// wait for its outcome (see openTable).
	unlinking []Ino
	// changedIn are contents that change in place (see extents.Pins).
	changedIn []ContentID
	// sameBytes tells that extents change and what they hold does not.
	sameBytes bool
	// published are contents whose staging ends.
	published []ContentID
	// flushed are inodes whose stored content moved without a change that
	// anybody in this process could see.
	flushed []Ino
	// prune are implied directories that may be empty now and that this
	// transaction has no room to remove.
	prune []Ino
	// buckets are removed directories that had uploads.
	buckets []Ino
	// moved counts the directories that get another name or parent.
	moved int
}

// update runs fn in a serializable transaction, then tells the watchers what
// changed. It returns after every watcher was told, so that an acknowledged
// change is visible through every door of the process.
func (fs *FS) update(ctx context.Context, fn func(t cluster.Txn, o *op) error) error {
	if err := fs.ids.Reserve(ctx); err != nil {
		return err
	}
	ctx = fs.durably(ctx)
	var last *op
	token := takeToken(ctx)
	rec := changeclock.Txn{Clock: fs.attrs.clock}
	defer rec.End()
	relaxed := fs.relaxed.Load()
	err := fs.kv.Update(ctx, func(t cluster.Txn) error {
		if last != nil {
			fs.opens.endUnlink(last.unlinking)
			fs.changes.end(last.events)
			fs.pins.End(last.changedIn)
			fs.moves.end(last.moved)
		}
		last = &op{fs: fs, ctx: ctx, nowNS: fs.cfg.Now().UnixNano()}
		rec.Txn = t
		return last.once(&rec, token, fn)
	})
	if last != nil {
		defer fs.changes.end(last.events)
		fs.opens.endUnlink(last.unlinking)
		fs.pins.End(last.changedIn)
		fs.moves.end(last.moved)
		// After an unknown outcome the change may have happened: caches must go.
		if err == nil || errors.Is(err, cluster.ErrUnavailable) {
			fs.committed(ctx, last, relaxed, err == nil)
			fs.watch.notify(ctx, last.events)
		}
		if err == nil {
			fs.pruneRest(ctx, last.prune)
			for _, ino := range last.buckets {
				fs.abortUploads(ctx, ino)
			}
		}
	}
	return fserr.Map(err)
}

// committed tells the files that this process has open, before the watchers.
// relaxed is how many relaxed commits there were when the transaction began;
// known tells that the commit happened, and with it the earlier ones.
func (fs *FS) committed(ctx context.Context, o *op, relaxed uint64, known bool) {
	if cluster.IsRelaxed(ctx) {
		fs.relaxed.Add(1)
	} else if known && len(o.flushed) > 0 {
		fs.markSynced(relaxed)
	}
	for _, c := range o.published {
		fs.staged.Remove(c)
	}
	for _, ino := range o.flushed {
		if of := fs.opens.get(ino); of != nil {
			of.contentCommitted()
		}
	}
	for _, e := range o.events {
		if !e.entry {
			if of := fs.opens.get(e.ino); of != nil {
				of.contentCommitted()
			}
		}
	}
}

// view runs fn on one consistent snapshot. What fn pins stays readable. fn runs
// again if a content that it opens changed since.
func (fs *FS) view(ctx context.Context, fn func(r cluster.Reader) error) error {
	return fs.look(ctx, fs.kv.View, fn)
}

// peek is view for a few pairs that are read by key. fn may run twice.
func (fs *FS) peek(ctx context.Context, fn func(r cluster.Reader) error) error {
	return fs.look(ctx, fs.kv.Peek, fn)
}

func (fs *FS) look(ctx context.Context, read func(context.Context, func(cluster.Reader) error) error, fn func(r cluster.Reader) error) error {
	ctx = fs.durably(ctx)
	for try := 1; ; try++ {
		epoch := fs.pins.Enter()
		err := read(ctx, fn)
		fs.pins.Leave(epoch)
		var late *overtakenError
		if !errors.As(err, &late) || try == maxOvertaken {
			return fserr.Map(err)
		}
		if err := fs.pins.Settled(ctx, late.content); err != nil {
			return err
		}
	}
}
