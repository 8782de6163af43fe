package vfs

import (
	"context"
	"errors"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/changeclock"
	"ogw/vfs/internal/commits"
	"ogw/vfs/internal/content"
	"ogw/vfs/internal/feed"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/session"
	"ogw/vfs/internal/tokens"
)

// op is one attempt at one operation's transaction: the clock it goes by, and
// what it does besides its writes. It is made anew for every attempt.
type op struct {
	fs    *FS
	ctx   context.Context
	nowNS int64

	removals session.Removals // of last links; openers wait for the outcome
	contents content.Change
	durable  commits.Effect
	move     *session.Move // of updateEnd; else nil
	feed     feed.Batch
	later    followUps
}

// effect is something that an operation does besides its writes. While the
// transaction runs it is noted, before the engine commits; then exactly one of
// the methods is called.
type effect interface {
	// Again ends an attempt that had no effect, and that another one follows.
	Again()
	// Failed ends a transaction that had no effect.
	Failed()
	// Committed comes after the commit. Without known its outcome is unknown:
	// what others rely on must allow for both.
	Committed(ctx context.Context, known bool)
}

// effects are all that an operation has, in the order in which they end: who is
// notified of a change finds marks and open files as they are after it, and what
// follows is a change of its own.
func (o *op) effects() [6]effect {
	return [...]effect{&o.removals, &o.contents, &o.durable, o.move, &o.feed, &o.later}
}

func (fs *FS) newOp(ctx context.Context, relaxed uint64) *op {
	o := &op{
		fs: fs, ctx: ctx, nowNS: fs.cfg.Now().UnixNano(),
		removals: fs.session.Open.Removals(),
		durable:  fs.commits.Begin(relaxed),
		feed:     fs.feed.Batch(),
	}
	o.contents = fs.contents.Begin(o, o.nowNS)
	return o
}

// update runs fn in a serializable transaction, then notifies the watchers of what
// changed. It returns after every watcher was notified, so that an acknowledged
// change is visible through every door of the process.
func (fs *FS) update(ctx context.Context, fn func(t cluster.Txn, o *op) error) error {
	if err := fs.ids.Reserve(ctx); err != nil {
		return err
	}
	ctx = fs.durably(ctx)
	token := tokens.Take(ctx)
	rec := changeclock.Txn{Clock: fs.attrs.Clock}
	defer rec.End()
	relaxed := fs.commits.Made()
	var last *op
	err := fs.kv.Update(ctx, func(t cluster.Txn) error {
		if last != nil {
			last.again()
		}
		last = fs.newOp(ctx, relaxed)
		rec.Txn = t
		return fs.tokens.Once(&rec, token, last.nowNS, func(t cluster.Txn) error { return fn(t, last) })
	})
	if last != nil {
		last.end(err)
	}
	return fserr.Map(err)
}

func (o *op) again() {
	for _, e := range o.effects() {
		e.Again()
	}
}

// end ends the transaction, for which the engine returned err.
func (o *op) end(err error) {
	// After an unknown outcome the change may have happened.
	committed := err == nil || errors.Is(err, cluster.ErrUnavailable)
	for _, e := range o.effects() {
		if committed {
			e.Committed(o.ctx, err == nil)
		} else {
			e.Failed()
		}
	}
}

// InodeChanged implements content.Operation.
func (o *op) InodeChanged(ino Ino, data bool) { o.feed.InodeChanged(ino, data) }

// Stored implements content.Operation. It also stands for what ino's open file
// had in memory and is in the store now.
func (o *op) Stored(ino Ino) {
	o.durable.Stored()
	o.feed.Stored(ino)
}

// putChanged stores n after a change of its metadata.
func (o *op) putChanged(t cluster.Txn, n *record.Inode) error {
	n.CtimeNS = o.nowNS
	o.feed.InodeChanged(n.Ino, false)
	return record.PutInode(t, n)
}

// followUps are transactions that follow a commit, before the operation returns.
type followUps struct {
	list []func(ctx context.Context)
}

// followUpTime is how long they go on when who asked for the operation is gone: below what
// the doors of a process that stops wait for requests that they cut off.
const followUpTime = 4 * time.Second

// outliving returns a context that ends some time after ctx.
func outliving(ctx context.Context, by time.Duration) (_ context.Context, end func()) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(by, cancel) })
	return longer, func() { stop(); cancel() }
}

// then has fn run after the commit.
func (l *followUps) then(fn func(ctx context.Context)) { l.list = append(l.list, fn) }

// Again implements effect.
func (l *followUps) Again() {}

// Failed implements effect.
func (l *followUps) Failed() {}

// Committed implements effect. What follows a commit that may not have
// happened is left to Check.
func (l *followUps) Committed(ctx context.Context, known bool) {
	if !known || len(l.list) == 0 {
		return
	}
	ctx, end := outliving(ctx, followUpTime)
	defer end()
	for _, fn := range l.list {
		fn(ctx)
	}
}

// view runs fn on one consistent snapshot. What fn pins stays readable. fn runs
// again if a content that it opens changed since.
func (fs *FS) view(ctx context.Context, fn func(r cluster.Reader) error) error {
	return fs.contents.View(ctx, fn)
}

// peek is view for a few pairs that are read by key. fn may run twice.
func (fs *FS) peek(ctx context.Context, fn func(r cluster.Reader) error) error {
	return fs.contents.Peek(ctx, fn)
}

// updateFile is update for changes of ino's content: what does not fit one
// transaction is prepared in others, each of which leaves a consistent file.
func (fs *FS) updateFile(ctx context.Context, ino Ino, fn func(t cluster.Txn, o *op) error) error {
	token := tokens.Take(ctx) // for the last transaction: then all is done
	return fs.contents.Fit(ctx, ino, func() error { return fs.update(tokens.Again(ctx, token), fn) })
}

// durably returns a context with the durability of the whole, unless the
// caller asked for one.
func (fs *FS) durably(ctx context.Context) context.Context {
	if fs.cfg.Async && !cluster.AsksDurability(ctx) {
		return cluster.Relaxed(ctx)
	}
	return ctx
}
