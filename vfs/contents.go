package vfs

import (
	"context"

	"ogw/cluster"
	"ogw/vfs/internal/content"
	"ogw/vfs/internal/extents"
)

func (fs *FS) newContents() *content.Store {
	return content.New(content.Config{
		Namespace: contentSpace{fs}, KV: fs.kv, Engine: fs.blobs, Blobs: fs.quarantine,
		IDs: &fs.ids, Feed: fs.feed, Session: fs.session, Log: fs.log, Now: fs.cfg.Now,
		InlineBytes: fs.cfg.InlineBytes,
		ExtentPage:  extents.PageExtents,
	})
}

// contentSpace is the namespace as contents see it.
type contentSpace struct{ fs *FS }

// Update implements content.Namespace.
func (s contentSpace) Update(ctx context.Context, fn func(t cluster.Txn, ch *content.Change) error) error {
	return s.fs.update(ctx, func(t cluster.Txn, o *op) error { return fn(t, &o.contents) })
}

// Durably implements content.Namespace.
func (s contentSpace) Durably(ctx context.Context) context.Context { return s.fs.durably(ctx) }

// SyncRelaxed implements content.Namespace.
func (s contentSpace) SyncRelaxed(ctx context.Context) error { return s.fs.syncRelaxed(ctx) }

// DropSnapshots implements content.Namespace.
func (s contentSpace) DropSnapshots(too func(ContentID) bool) {
	s.fs.eachOpen(func(of *openFile) { of.dropSnapshot(too) })
}

// dropSnapshot lets go of a snapshot that is not used any more, and of a current one if it
// reads a content for which too is true: who reads next loads another one.
func (of *openFile) dropSnapshot(too func(ContentID) bool) {
	of.mu.Lock()
	defer of.mu.Unlock()
	if of.current() && (of.snap.reader == nil || !too(of.snap.inode.Content)) {
		return
	}
	of.snap.release()
	of.snap = nil
}

// anyContent and noContent are for openFile.dropSnapshot.
func anyContent(ContentID) bool { return true }
func noContent(ContentID) bool  { return false }

// Collect runs one pass of the collector: what is queued for deletion goes, and the
// orphans of processes that are gone. It returns how many queue entries it finished.
func (fs *FS) Collect(ctx context.Context) (int, error) {
	return fs.contents.Collect(ctx, fs.collectOrphans)
}
