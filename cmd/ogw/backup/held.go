package backup

import (
	"context"
	"sync"
	"time"

	"ogw/cluster"
	"ogw/httpapi/admin"
	"ogw/vfs"
)

// Source is the store, as admin.Client shows it.
type Source interface {
	AddBackup(ctx context.Context, q admin.AddBackup) (admin.Backup, error)
	BackupPairs(ctx context.Context, id, from string) (*admin.BackupPage, error)
	BackupBlobs(ctx context.Context, id string, list []vfs.BackupBlob, data func(i int, p []byte) error, done func(i int, damage error) error) error
	UseBackup(ctx context.Context, id string, q admin.UseBackup) error
	RemoveBackup(ctx context.Context, id string) error
}

// held is an instant of a source that it holds.
type held struct {
	admin.Backup
	source Source

	mu     sync.Mutex
	needed cluster.BlobID // blobs before it are done
}

// hold runs fn while the source holds an instant.
func hold(ctx context.Context, source Source, q admin.AddBackup, fn func(ctx context.Context, h *held) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	b, err := source.AddBackup(ctx, q)
	if err != nil {
		return err
	}
	h := &held{Backup: b, source: source}
	defer func() { _ = source.RemoveBackup(context.WithoutCancel(ctx), h.ID) }() // its lease ends, too
	alive := h.keepAlive(ctx, cancel)
	err = fn(ctx, h)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	cancel(nil)
	alive.Wait()
	return err
}

// release records that no blob before id is needed any more.
func (h *held) release(id cluster.BlobID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.needed = id
}

// keepAlive uses it in the source until ctx ends, which it does if it cannot.
func (h *held) keepAlive(ctx context.Context, cancel context.CancelCauseFunc) *sync.WaitGroup {
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(admin.BackupKeepAlive)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			h.mu.Lock()
			q := admin.UseBackup{}
			if h.needed != (cluster.BlobID{}) {
				q.From = h.needed.String()
			}
			h.mu.Unlock()
			if err := h.source.UseBackup(ctx, h.ID, q); err != nil && ctx.Err() == nil {
				cancel(err)
			}
		}
	})
	return &wg
}

// eachPage calls fn for the pages of the metadata.
func (h *held) eachPage(ctx context.Context, fn func(*admin.BackupPage) error) error {
	for from := ""; ; {
		page, err := h.source.BackupPairs(ctx, h.ID, from)
		if err != nil {
			return err
		}
		if err := fn(page); err != nil {
			return err
		}
		if from = page.Next; from == "" {
			return nil
		}
	}
}

// maxDamaged bounds the damaged blobs that are named.
const maxDamaged = 1000

// damage counts blobs that cannot be read. It is safe for concurrent use.
type damage struct {
	mu    sync.Mutex
	count int64
	names []string // at most maxDamaged
}

func (d *damage) note(id cluster.BlobID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count++
	if len(d.names) < maxDamaged {
		d.names = append(d.names, id.String())
	}
}
