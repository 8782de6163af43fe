package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"ogw/cluster"
	"ogw/vfs"
)

const (
	// restoreWorkers is how many blobs are written at a time: an engine makes
	// one flush of many.
	restoreWorkers = 8
	// restoreBytes and restorePairs bound the pairs of one transaction.
	restoreBytes = 1 << 20
	restorePairs = 512
)

// Restored describes what Restore did.
type Restored struct {
	Records int64 `json:"records"`
	Blobs   int64 `json:"blobs"`
	Bytes   int64 `json:"bytes"`
	// Skipped are the blobs that an earlier run restored.
	Skipped int64 `json:"skipped_blobs"`
	Read    int64 `json:"read_bytes"` // of the repository
	// DamagedBlobs are not in the snapshot: they could not be read when it was made.
	DamagedBlobs int64 `json:"damaged_blobs"`
	// LostBlobs are damaged in the repository, and were left out (SkipDamaged); Lost names
	// at most maxDamaged of them.
	LostBlobs int64    `json:"lost_blobs"`
	Lost      []string `json:"lost,omitempty"`
	// LockedSecrets are in the snapshot, sealed with LockedBy, and the store has other
	// keys, or none; Secrets counts all.
	LockedSecrets int      `json:"locked_secrets"`
	LockedBy      []string `json:"locked_by,omitempty"`
	Secrets       int      `json:"secrets"`
}

// reading reads a snapshot.
type reading struct {
	repo     *Repository
	snap     *Snapshot
	packs    *packCache
	progress func(Progress)
	read     atomic.Int64
	skip     bool // blobs that are damaged
	lost     damage

	mu   sync.Mutex
	told Progress
	done Restored
}

func newReading(repo *Repository, s *Snapshot, progress func(Progress)) *reading {
	r := &reading{repo: repo, snap: s, progress: progress, told: Progress{AllBlobs: s.Blobs, AllBytes: s.Bytes}}
	r.done.DamagedBlobs = s.DamagedBlobs
	r.packs = &packCache{storage: repo, limit: cachedBytes, read: r.count}
	return r
}

func (r *reading) count(n int) { r.read.Add(int64(n)) }

func (r *reading) tell(change func(*Progress, *Restored)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.told, &r.done)
	r.told.Moved = r.read.Load()
	if r.progress != nil {
		r.progress(r.told)
	}
}

// each calls fn for the entries with keys in [from, to), nil: to the end.
func (r *reading) each(ctx context.Context, from, to []byte, fn func(*entry) error) error {
	m, err := openLayers(ctx, r.repo, r.snap.Layers, from, r.count)
	if err != nil {
		return err
	}
	for {
		e, err := m.head(ctx)
		if err != nil || e == nil || to != nil && !before(e.key, to) {
			return err
		}
		m.pop()
		if err := fn(e); err != nil {
			return err
		}
	}
}

// bytes calls fn with what an entry holds, verified, which is fn's until it returns.
func (r *reading) bytes(ctx context.Context, e *entry, fn func([]byte) error) error {
	if e.kind == entryValue {
		return fn(e.value)
	}
	return r.packs.use(ctx, packName(e.piece.session, e.piece.pack), max(packBytes, int(e.piece.len)), func(p *pack) error {
		b, err := p.get(e.key, &e.piece)
		if err != nil {
			return err
		}
		return fn(b)
	})
}

// RestoreConfig of Restore.
type RestoreConfig struct {
	vfs.RestoreConfig // but Snapshot
	// SkipDamaged leaves out the blobs that are damaged in the repository. Without a
	// record there is no store: these must be whole.
	SkipDamaged bool
	Progress    func(Progress)
}

// Restore brings a snapshot back into an empty store, or goes on with that. All
// that it reads it verifies; the store is none before all is there.
func Restore(ctx context.Context, repo *Repository, s *Snapshot, c *cluster.Cluster, o RestoreConfig) (Restored, error) {
	if s.StoreFormat > vfs.FormatVersion {
		return Restored{}, fmt.Errorf("snapshot %s %w: its metadata have format %d, this program knows up to %d",
			s.ID, ErrFormat, s.StoreFormat, vfs.FormatVersion)
	}
	r := newReading(repo, s, o.Progress)
	r.skip = o.SkipDamaged
	o.Snapshot = s.ID
	target, err := vfs.BeginRestore(ctx, c, o.RestoreConfig)
	if err != nil {
		return r.done, err
	}
	r.tell(func(p *Progress, _ *Restored) { p.Step = "blobs" })
	if err := r.restoreBlobs(ctx, c.Blobs); err != nil {
		return r.done, err
	}
	r.tell(func(p *Progress, _ *Restored) { p.Step = "metadata" })
	if err := r.restorePairs(ctx, target); err != nil {
		return r.done, err
	}
	r.done.Read = r.read.Load()
	r.done.LostBlobs, r.done.Lost = r.lost.count, r.lost.names
	if s.Secrets.Sealed > 0 { // else no key opens them
		locked := target.Locked()
		r.done.LockedSecrets, r.done.LockedBy, r.done.Secrets = locked.Secrets, locked.Keys, locked.All
	}
	if r.done.Records != s.Records || r.done.Blobs+r.done.LostBlobs != s.Blobs-s.DamagedBlobs {
		return r.done, fmt.Errorf("%w: snapshot %s: it lists %d records and %d blobs, and its catalog %d and %d", ErrDamaged,
			s.ID, s.Records, s.Blobs-s.DamagedBlobs, r.done.Records, r.done.Blobs)
	}
	return r.done, target.Finish(ctx)
}

func (r *reading) restorePairs(ctx context.Context, target *vfs.Restore) error {
	var keys, values [][]byte
	size := 0
	flush := func() error {
		_, err := target.Put(ctx, keys, values)
		n := int64(len(keys))
		r.tell(func(p *Progress, d *Restored) {
			p.Records += n
			d.Records += n
			d.Bytes += int64(size)
		})
		keys, values, size = nil, nil, 0
		return err
	}
	err := r.each(ctx, []byte{keyPair}, []byte{keyBlob}, func(e *entry) error {
		var v []byte
		err := r.bytes(ctx, e, func(b []byte) error {
			v = bytes.Clone(b) // its pack need not stay for it
			return nil
		})
		if err != nil {
			return err
		}
		keys, values = append(keys, e.key[1:]), append(values, v)
		if size += len(e.key) + len(v); size < restoreBytes && len(keys) < restorePairs {
			return nil
		}
		return flush()
	})
	if err != nil || len(keys) == 0 {
		return err
	}
	return flush()
}

func (r *reading) restoreBlobs(ctx context.Context, blobs cluster.Blobs) error {
	there := present{blobs: blobs}
	return r.eachBlob(ctx, restoreWorkers, func(e *entry, id cluster.BlobID) (bool, error) {
		has, err := there.find(ctx, id)
		if has != nil {
			r.blobDone(e, true)
		}
		return has == nil, err
	}, func(ctx context.Context, e *entry, id cluster.BlobID) error {
		err := r.bytes(ctx, e, func(b []byte) error {
			if err := writeBlob(ctx, blobs, id, b, e.piece.sum); err != nil {
				return fmt.Errorf("write blob %v: %w", id, err)
			}
			r.blobDone(e, false)
			return nil
		})
		if r.skip && errors.Is(err, ErrDamaged) {
			r.lost.note(id)
			return nil
		}
		return err
	})
}

func (r *reading) blobDone(e *entry, skipped bool) {
	r.tell(func(p *Progress, d *Restored) {
		p.Blobs++
		p.Bytes += int64(e.piece.len)
		d.Blobs++
		d.Bytes += int64(e.piece.len)
		if skipped {
			d.Skipped++
		}
	})
}

func writeBlob(ctx context.Context, blobs cluster.Blobs, id cluster.BlobID, b []byte, s sum) error {
	w, err := blobs.Create(ctx, id, int64(len(b)))
	if err != nil {
		return err
	}
	defer w.Abort()
	if _, err := w.Write(b); err != nil {
		return err
	}
	return commitBlob(ctx, blobs, w, cluster.BlobInfo{ID: id, Size: int64(len(b))}, s)
}

// commitBlob stores a blob, and removes one that is not what was written: another run
// would take it for done.
func commitBlob(ctx context.Context, blobs cluster.Blobs, w cluster.BlobWriter, x cluster.BlobInfo, s sum) error {
	n, crc, err := w.Commit(ctx)
	if err == nil && (n != x.Size || blobSum(crc) != s) {
		err = errors.Join(errors.New("it wrote other bytes"), blobs.Delete(ctx, x.ID))
	}
	return err
}

// eachBlob calls use for the blobs that want wants, in workers beside each other.
func (r *reading) eachBlob(ctx context.Context, workers int, want func(*entry, cluster.BlobID) (bool, error), use func(context.Context, *entry, cluster.BlobID) error) error {
	type task struct {
		e  *entry
		id cluster.BlobID
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	tasks := make(chan task)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for t := range tasks {
				if ctx.Err() != nil {
					continue
				}
				if err := use(ctx, t.e, t.id); err != nil {
					cancel(err)
				}
			}
		})
	}
	err := r.each(ctx, []byte{keyBlob}, nil, func(e *entry) error {
		id, err := cluster.ParseBlobID(e.key[1:])
		if err != nil || e.kind != entryPiece {
			return fmt.Errorf("%w: snapshot %s: the entry of blob %x", ErrDamaged, r.snap.ID, e.key[1:])
		}
		wanted, err := want(e, id)
		if err != nil || !wanted {
			return err
		}
		select {
		case tasks <- task{e, id}:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	close(tasks)
	wg.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// Verify reads all of a snapshot and compares it with its checksums.
func Verify(ctx context.Context, repo *Repository, s *Snapshot, progress func(Progress)) (Restored, error) {
	r := newReading(repo, s, progress)
	r.tell(func(p *Progress, _ *Restored) { p.Step = "verify" })
	err := r.each(ctx, []byte{keyPair}, []byte{keyBlob}, func(e *entry) error {
		return r.bytes(ctx, e, func(b []byte) error {
			r.done.Records++
			r.done.Bytes += int64(len(e.key) - 1 + len(b))
			return nil
		})
	})
	if err != nil {
		return r.done, err
	}
	all := func(*entry, cluster.BlobID) (bool, error) { return true, nil }
	err = r.eachBlob(ctx, packsInFlight, all, func(ctx context.Context, e *entry, _ cluster.BlobID) error {
		return r.bytes(ctx, e, func([]byte) error {
			r.blobDone(e, false)
			return nil
		})
	})
	r.done.Read = r.read.Load()
	if err == nil && (r.done.Records != s.Records || r.done.Blobs != s.Blobs-s.DamagedBlobs) {
		err = fmt.Errorf("%w: snapshot %s: its catalog does not hold what it lists", ErrDamaged, s.ID)
	}
	return r.done, err
}

func parseSession(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 16, 64)
	if err != nil {
		err = fmt.Errorf("%w: session %q", ErrDamaged, s)
	}
	return n, err
}
