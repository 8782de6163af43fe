// Package backup takes an instant of a store and holds what it consists of while it
// is read (Backup), and fills an empty store with that (Restore).
package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/content"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/ids"
	"ogw/vfs/internal/quarantine"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/secrets"
	"ogw/vfs/seal"
)

// Lease is how long a Backup lives that nobody uses.
const Lease = time.Minute

var (
	// ErrEnded means that a Backup does not hold its data any more.
	ErrEnded = errors.New("the backup has ended")
	// ErrBlobDeleted means that a blob was due for deletion at the instant:
	// no file has it, and a pass of the collector that broke off may have
	// deleted it.
	ErrBlobDeleted = errors.New("the blob was being deleted")
)

// Config is what becomes of the secrets. A backup holds none in clear.
type Config struct {
	// Keys seal them in the backup. Without, they are as the store has them,
	// which must have sealed them.
	Keys *seal.Keyring
	// DropSecrets seals them with a key that nobody will ever have: what they
	// are good for is as if the store's key were lost.
	DropSecrets bool
}

// Backup is one instant of the namespace, and holds what it consists of. It is
// safe for concurrent use.
//
// The instant is a snapshot of the metadata, taken when no write waits in a
// buffer (see Gate). A blob that it names stays: the collector, through which
// everything goes that a transaction named once, passes over the contents that
// are as old as the snapshot (content.Hold). Those behind Release are let go. Beside
// others, whose collectors know nothing of a Hold, all of it is one long read, for which
// they wait (session.Session.Reading).
type Backup struct {
	store Store
	cfg   Config
	hold  *content.Hold
	over  func() // ends the read
	lease *time.Timer
	info  Info

	ctx    context.Context
	cancel context.CancelCauseFunc
	jobs   chan func(cluster.Reader)
	read   sync.Once
	done   chan struct{} // closed when no job comes any more
	ended  chan struct{} // closed when the snapshot is gone

	mu      sync.Mutex
	secrets Secrets
	dead    map[record.ContentID]record.QueueKind // nil: not read yet, see dueContents
}

// Info describes a Backup.
type Info struct {
	FSID   uint64    `json:"fsid"`
	Format uint64    `json:"format"` // FormatVersion
	Time   time.Time `json:"time"`   // the instant
	// Wait is the longest that a writer can have waited.
	Wait time.Duration `json:"wait_ns"`
	// Settled reports whether no write waited in a buffer of this process: without it,
	// bytes that were written through its NFS and mounts at the very moment, and not
	// synced, can be missing.
	Settled bool `json:"settled"`
}

// Secrets counts the secrets in what Pairs returned: keys of users, and
// secrets of the store.
type Secrets struct {
	Sealed int `json:"sealed"`
	// Lost are those that were dropped, or whose record is damaged.
	Lost int `json:"lost"`
}

// Blob is a blob that a Backup names.
type Blob struct {
	ID   cluster.BlobID
	Size int64
	CRC  uint64 // CRC64NVME of all of it
}

// Store is what a backup is made of.
type Store struct {
	KV       cluster.KV
	Super    record.Superblock
	Contents *content.Store
	Blobs    *quarantine.Blobs
	IDs      *ids.Allocator
	Keys     *seal.Keyring // of the secrets in the store
	Gate     *Gate         // that writers to buffers pass
	// Reading begins a read that others wait for.
	Reading func() (over func())
	// Flush stores what buffers of this process hold.
	Flush func(ctx context.Context) error
	Log   *slog.Logger
	Now   func() time.Time
}

// Begin takes an instant. It returns fserr.ErrInvalid if secrets are in clear and c
// does not say what becomes of them, and the error of content.Store.Hold.
func Begin(ctx context.Context, s Store, c Config) (*Backup, error) {
	if c.DropSecrets {
		var err error
		if c.Keys, err = seal.Throwaway(); err != nil {
			return nil, err
		}
	}
	b := &Backup{store: s, cfg: c, jobs: make(chan func(cluster.Reader)), done: make(chan struct{}), ended: make(chan struct{})}
	var err error
	b.ctx, b.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	b.lease = time.AfterFunc(Lease, func() {
		b.end(fmt.Errorf("%w: nobody used it for %v", ErrEnded, Lease))
	})
	b.lease.Stop() // until it is there, only who waits for it can use it
	if b.hold, err = s.Contents.Hold(b.endHold); err != nil {
		return nil, err
	}
	b.over = sync.OnceFunc(s.Reading())
	stop := context.AfterFunc(ctx, func() { b.end(context.Cause(ctx)) })
	defer stop()
	b.info = Info{FSID: s.Super.FSID, Format: s.Super.Version}
	b.info.Wait, b.info.Settled, err = s.Gate.take(ctx, s.Flush, b.snapshot)
	if err == nil {
		err = b.begin(ctx)
	}
	if err == nil {
		err = b.Touch()
	}
	if err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// keep holds the snapshot and runs the jobs on it. It closes began when it has
// it.
func (b *Backup) keep(began chan<- struct{}) error {
	// Relaxed: to wait for the medium would not make it another instant.
	return fserr.Map(b.store.KV.View(cluster.Relaxed(b.ctx), func(r cluster.Reader) error {
		if _, err := r.Get(record.SuperKey()); err != nil { // now the snapshot is there, whatever the engine
			return err
		}
		close(began)
		for {
			select {
			case job := <-b.jobs:
				job(r)
			case <-b.done:
				return nil
			case <-b.ctx.Done():
				return nil
			}
		}
	}))
}

// snapshot takes the snapshot, and returns when it has it.
func (b *Backup) snapshot() error {
	began, failed := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(b.ended)
		failed <- b.keep(began)
	}()
	select {
	case <-began:
	case err := <-failed:
		return err
	}
	b.info.Time = b.store.Now().UTC()
	return nil
}

// begin comes after the cut: of what is newer than it nothing need be held.
func (b *Backup) begin(ctx context.Context) error {
	limit, err := b.store.IDs.Take(ctx)
	if err != nil {
		return err
	}
	b.hold.Bound(limit)
	if b.cfg.Keys == nil {
		clear := 0
		err := b.run(ctx, func(r cluster.Reader) (err error) {
			clear, err = secrets.CountClear(r)
			return err
		})
		if err != nil {
			return err
		}
		if clear > 0 {
			return fmt.Errorf("%w: the store keeps %d secrets in clear (it has no cluster.key_file): "+
				"give a key that seals them in the backup, or leave them out", fserr.ErrInvalid, clear)
		}
	}
	return nil
}

// Info describes the instant.
func (b *Backup) Info() Info { return b.info }

// Secrets counts those that Pairs returned.
func (b *Backup) Secrets() Secrets {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.secrets
}

// Touch records that it is still in use. It returns why it ended.
func (b *Backup) Touch() error {
	if b.ctx.Err() != nil {
		return context.Cause(b.ctx)
	}
	b.lease.Reset(Lease)
	return nil
}

// Ended reports whether it has ended. To ask is not to use it.
func (b *Backup) Ended() bool { return b.ctx.Err() != nil }

// Close lets go of everything.
func (b *Backup) Close() { b.end(ErrEnded) }

// endHold is end by the store, with its reason.
func (b *Backup) endHold(why error) {
	if errors.Is(why, content.ErrHoldEnded) {
		why = fmt.Errorf("%w: %w", ErrEnded, why)
	}
	b.end(why)
}

func (b *Backup) end(why error) {
	b.lease.Stop()
	b.cancel(why)
	b.hold.Remove()
	b.over()
}

// run runs job on the snapshot.
func (b *Backup) run(ctx context.Context, job func(cluster.Reader) error) error {
	result := make(chan error, 1)
	select {
	case b.jobs <- func(r cluster.Reader) { result <- job(r) }:
		return fserr.Map(<-result)
	case <-b.ended:
		if err := context.Cause(b.ctx); err != nil {
			return err
		}
		return fmt.Errorf("%w: its metadata were read", ErrEnded)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ReadBlob writes a blob to w, verified. It returns ErrCorrupt for a damaged
// one, and ErrBlobDeleted for one that cannot be read and that no file has.
func (b *Backup) ReadBlob(ctx context.Context, id cluster.BlobID, size int64, w io.Writer, buf []byte) error {
	err := b.readBlob(ctx, id, size, w, buf)
	if errors.Is(err, fserr.ErrCorrupt) {
		due, e := b.wasDue(ctx, id)
		if e != nil {
			return e
		}
		if due {
			return fmt.Errorf("%w: %w", ErrBlobDeleted, err)
		}
	}
	return err
}

// wasDue reports whether the collector was to remove a blob at the instant.
func (b *Backup) wasDue(ctx context.Context, id cluster.BlobID) (due bool, err error) {
	dead, err := b.dueContents(ctx)
	c := record.ContentID(id.Content)
	if err != nil || dead[c] != record.QueueUpload {
		return dead[c] == record.QueueContent, err
	}
	err = b.store.Contents.View(ctx, func(r cluster.Reader) error {
		due = true
		named := func(e *record.Extent) { due = due && !(e.Kind == record.ExtentBlob && e.Seq == id.Seq) }
		v, err := r.Get(record.UploadIDKey(c))
		if err != nil {
			return err
		}
		if v != nil { // in progress: what is due are parts that were replaced
			return content.EachPart(r, c, named)
		}
		return content.EachExtent(r, c, named) // what was completed has its blobs in the upload's content
	})
	return due && err == nil, err
}

// dueContents returns which contents and uploads were due for removal at the instant. It is
// the snapshot that tells: the collector of another gateway may have finished them since.
func (b *Backup) dueContents(ctx context.Context) (map[record.ContentID]record.QueueKind, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dead != nil {
		return b.dead, nil
	}
	dead := make(map[record.ContentID]record.QueueKind)
	err := b.run(ctx, func(r cluster.Reader) error {
		from, to := record.Table(record.TabQueue)
		return r.Scan(from, to, cluster.ScanOptions{}, func(k, v []byte) error {
			e, err := record.DecodeQueueEntry(k, v)
			if err == nil && (e.Kind == record.QueueContent || e.Kind == record.QueueUpload) && dead[e.Content] != record.QueueContent {
				dead[e.Content] = e.Kind
			}
			return nil
		})
	})
	if err == nil {
		b.dead = dead
	}
	return b.dead, err
}

func (b *Backup) readBlob(ctx context.Context, id cluster.BlobID, size int64, w io.Writer, buf []byte) error {
	for off := int64(0); off < size; {
		if err := b.Touch(); err != nil {
			return err
		}
		part := buf[:min(int64(len(buf)), size-off)]
		n, err := b.store.Blobs.Read(quarantine.FoundBy(ctx, "backup"), id, part, off)
		if n != len(part) {
			if err == nil || errors.Is(err, io.EOF) {
				err = fmt.Errorf("%w: blob %v is too short", fserr.ErrCorrupt, id)
			}
			return fserr.Map(err)
		}
		if _, err := w.Write(part); err != nil {
			return err
		}
		off += int64(n)
	}
	return nil
}

// Release records that no blob before id is needed any more.
func (b *Backup) Release(id cluster.BlobID) error {
	b.hold.Release(record.ContentID(id.Content))
	return b.Touch()
}
