package vfs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"ogw/cluster"
	"ogw/vfs/iam"
	"ogw/vfs/internal/changeclock"
	"ogw/vfs/internal/feed"
	"ogw/vfs/internal/format"
	"ogw/vfs/internal/fsck"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/orphans"
	"ogw/vfs/internal/receive"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/rights"
	"ogw/vfs/internal/secrets"
	"ogw/vfs/internal/session"
	"ogw/vfs/internal/tokens"
	"ogw/vfs/users"
)

// FormatVersion is the version of all that is stored. A store with a greater
// one is refused, one with a smaller one is converted when it is opened.
const FormatVersion = record.FormatVersion

// Open opens the namespace in c, making it if c is empty. c stays the
// caller's to close, after Close. It returns cluster.ErrFormat for a store
// of a newer version.
func Open(ctx context.Context, c *cluster.Cluster, cfg Config) (*FS, error) {
	fs := &FS{kv: c.KV, blobs: c.Blobs, cfg: cfg.withDefaults()}
	fs.log = fs.cfg.Logger
	fs.tune = tuning{uploadBytes: uploadBytes, flushOps: unlimitedFlushOps}
	fs.feed = feed.New(c.Exclusive, c.Live, fs.contentCommitted)
	lease, err := leaseOf(c)
	if err != nil {
		return nil, err
	}
	fs.session = session.New(lease, orphanStore{fs})
	fs.session.OnRecall(fs.feed.RecallAttrs)
	fs.session.OnCrowded(func() { fs.contents.DropSnapshots(anyContent) })
	fs.openLocks()
	fs.tokens = tokens.NewBook(c.KV, fs.session)
	fs.quarantine = fs.newQuarantine()
	fs.contents = fs.newContents()
	fs.bodies = &receive.Receiver{Contents: fs.contents, IDs: &fs.ids, InlineBytes: fs.cfg.InlineBytes}
	if fs.super, err = format.Open(ctx, fs.kv, fs.formatOptions()); err != nil {
		return nil, err
	}
	if err := fs.claim(ctx); err != nil {
		return nil, err
	}
	if fs.sealing, err = secrets.Seal(ctx, fs.kv, fs.cfg.Keys, fs.log); err != nil {
		return nil, err
	}
	fs.users = users.New(userStore{fs}, fs.cfg.Keys, !fs.feed.Complete())
	fs.rights = rights.Rules{Users: fs.users, Now: fs.cfg.Now, FileMode: fs.cfg.FileMode, DirMode: fs.cfg.DirMode}
	fs.rights.IAM = iam.New(iam.Config{Store: userStore{fs}, Users: fs.users, May: fs.rights.MayAdminister, Secret: fs.StoreSecret, Now: fs.cfg.Now})
	fs.multipart = fs.newUploads()
	if err := fs.ids.Init(ctx, fs.kv); err != nil {
		return nil, err
	}
	fs.orphans = orphans.NewQueue()
	fs.dirty.init(fs.cfg.DirtyBytes)
	fs.behind.init()
	if fs.feed.Complete() {
		fs.attrs.Clock, fs.attrs.Live = new(changeclock.Clock), c.Live
	}
	fs.uploads = make(chan struct{}, maxBlobUploads)
	if err := fs.openQuarantine(ctx); err != nil {
		return nil, err
	}
	if fs.leftovers, err = fsck.NewLeftovers(ctx, checkStore{fs}, fs.quarantine, fs.ids.Used()); err != nil {
		return nil, err
	}
	if err := fs.findTuned(ctx); err != nil {
		return nil, err
	}
	if cfg.Restore != nil {
		if err := cfg.Restore(ctx, fs); err != nil {
			return nil, err
		}
	}
	fs.session.Restored()
	if !fs.cfg.NoBackground {
		bg, stop := context.WithCancel(context.WithoutCancel(ctx))
		fs.background.stop = stop
		fs.startBackground(bg)
	}
	return fs, nil
}

// leaseOf returns the lease of a process that uses c beside others, nil where it has c
// to itself.
func leaseOf(c *cluster.Cluster) (*session.Lease, error) {
	if c.Exclusive {
		return nil, nil
	}
	l, ok := c.Lease.(*session.Lease)
	if !ok {
		return nil, fmt.Errorf("%w: a store that other processes can use has to be joined first", ErrInvalid)
	}
	return l, nil
}

// userStore runs the transactions of package users.
type userStore struct{ fs *FS }

func (s userStore) View(ctx context.Context, fn func(cluster.Reader) error) error {
	return s.fs.view(ctx, fn)
}

func (s userStore) Update(ctx context.Context, fn func(t cluster.Txn, nowNS int64) error) error {
	return s.fs.update(ctx, func(t cluster.Txn, o *op) error { return fn(t, o.nowNS) })
}

func (fs *FS) formatOptions() format.Options {
	return format.Options{Mode: fs.cfg.DirMode, UID: fs.cfg.RootUID, GID: fs.cfg.RootGID, MovedTo: fs.cfg.MovedTo, Keys: fs.cfg.Keys, Log: fs.log, Now: fs.cfg.Now}
}

func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.FileMode == 0 {
		c.FileMode = 0o644
	}
	if c.DirMode == 0 {
		c.DirMode = 0o755
	}
	if c.InlineBytes == 0 {
		c.InlineBytes = DefaultInlineBytes
	}
	if c.DirtyBytes == 0 {
		c.DirtyBytes = DefaultDirtyBytes
	}
	return c
}

// Close flushes every open file and stops the background work. The caller
// drains the doors before.
func (fs *FS) Close(ctx context.Context) error {
	fs.contents.EndHolds(ErrClosed)
	err := fs.flushAll(ctx)
	if fs.background.stop != nil {
		fs.background.stop()
		fs.background.wait.Wait()
	}
	if e := fs.behind.end(ctx); err == nil {
		err = e
	}
	if fs.shared != nil {
		if fs.shared.Close() {
			fs.session.Stay()
		}
	}
	if e := fs.storeReads(ctx); e != nil && !errors.Is(e, ErrReadOnly) {
		fs.log.Warn("access times are lost", "err", e)
	}
	if fs.session.Alone() { // else another one may have come, and counts from there (record.Reads)
		fs.ids.Release(ctx)
	}
	if e := fs.kv.Sync(ctx); err == nil {
		err = fserr.Map(e)
	}
	return err
}
