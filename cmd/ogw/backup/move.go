package backup

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"ogw/cluster"
	"ogw/httpapi/admin"
	"ogw/vfs"
	"ogw/vfs/seal"
)

// ErrNoRoom means that the new store has less space than the blobs need.
var ErrNoRoom = errors.New("the blobs do not fit into the new store")

// MoveOptions of Move.
type MoveOptions struct {
	// Keys seal the secrets in the new store; nil: they are in clear there.
	Keys *seal.Keyring
	// Last makes the new store one, after it has returned nil: nobody has changed the
	// old one since the pass began, or will. Nil leaves it unfinished.
	Last func() error
	Rate int64 // bytes a second to the new store; 0: no limit
	// Progress is called now and then. May be nil.
	Progress func(Progress)
}

// Moved describes a pass of Move.
type Moved struct {
	FSID     string    `json:"fsid"`
	Time     time.Time `json:"time"`     // the instant
	Finished bool      `json:"finished"` // the new store is one
	Settled  bool      `json:"settled"`
	Records  int64     `json:"records"`
	Changed  int64     `json:"changed_records"` // that were written or removed
	Blobs    int64     `json:"blobs"`
	Bytes    int64     `json:"bytes"` // of blobs
	// MovedBlobs were moved by this pass; the others were there.
	MovedBlobs int64 `json:"moved_blobs"`
	MovedBytes int64 `json:"moved_bytes"`
	// RemovedBlobs are what passes before had moved, and no file has any more.
	RemovedBlobs int64             `json:"removed_blobs"`
	Took         time.Duration     `json:"took_ns"`
	Secrets      vfs.BackupSecrets `json:"secrets"`
	DamagedBlobs int64             `json:"damaged_blobs"`
	// Damaged are blobs that could not be read, at most maxDamaged of them: the files
	// that use them are not whole in the new store.
	Damaged []string `json:"damaged,omitempty"`
}

// move is one pass.
type move struct {
	o      MoveOptions
	target *cluster.Cluster
	opens  *seal.Keyring
	held   *held
	out    *vfs.Move

	names, missing nameSorter
	remove         []cluster.BlobID
	damage         damage
	copied         atomic.Int64 // blobs
	copiedBytes    atomic.Int64
	gone           atomic.Int64 // that no file has

	uploads *uploads
	mu      sync.Mutex
	jobs    []*moveJob // that are not done, the oldest first

	telling sync.Mutex
	told    Progress
	done    Moved
}

// Move brings the new store up to an instant of the source: what differs is moved. It
// is called again while the source is in use, and goes on after an interruption; a last
// time when it is not in use any more. Before that the new store is none.
func Move(ctx context.Context, source Source, target *cluster.Cluster, o MoveOptions) (Moved, error) {
	m := &move{o: o, target: target, names: nameSorter{limit: sortRun}, missing: nameSorter{limit: sortRun}}
	defer m.names.close()
	defer m.missing.close()
	began := time.Now()
	// The secrets cross over sealed with a key for this pass alone.
	var raw [32]byte
	rand.Read(raw[:])
	key := base64.StdEncoding.EncodeToString(raw[:])
	var err error
	if m.opens, err = seal.Parse(key); err != nil {
		return m.done, err
	}
	m.tell(func(p *Progress) { p.Step = "instant" })
	err = hold(ctx, source, admin.AddBackup{Keys: key}, func(ctx context.Context, h *held) error {
		m.held = h
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		go func() {
			select {
			case <-target.Lost: // nil where it cannot be
				cancel(target.Live())
			case <-ctx.Done():
			}
		}()
		m.uploads = newUploads(ctx, moveStreams, newPace(o.Rate))
		defer m.uploads.end()
		err := m.pass(ctx)
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = cause
		}
		return err
	})
	m.done.Took = time.Since(began)
	m.done.MovedBlobs, m.done.MovedBytes = m.copied.Load(), m.copiedBytes.Load()
	m.done.DamagedBlobs, m.done.Damaged = m.damage.count, m.damage.names
	return m.done, err
}

func (m *move) tell(change func(*Progress)) {
	m.telling.Lock()
	defer m.telling.Unlock()
	change(&m.told)
	m.told.Moved = m.copiedBytes.Load()
	if m.o.Progress != nil {
		m.o.Progress(m.told)
	}
}

func (m *move) pass(ctx context.Context) (err error) {
	if m.held.Format > vfs.FormatVersion {
		return fmt.Errorf("%w: the store has format %d, this program knows up to %d", cluster.ErrFormat, m.held.Format, vfs.FormatVersion)
	}
	m.done.FSID, m.done.Time, m.done.Settled = fmt.Sprintf("%016x", m.held.FSID), m.held.Time, m.held.Settled
	m.out, err = vfs.BeginMove(ctx, m.target, vfs.MoveConfig{FSID: m.held.FSID, Opens: m.opens, Keys: m.o.Keys})
	if err != nil {
		return err
	}
	m.tell(func(p *Progress) { p.Step = "metadata" })
	if err := m.metadata(ctx); err != nil {
		return err
	}
	m.tell(func(p *Progress) { p.Step = "compare" })
	if err := m.compare(ctx); err != nil {
		return err
	}
	m.tell(func(p *Progress) { p.Step, p.AllBlobs, p.AllBytes = "blobs", m.missing.count, m.missing.bytes })
	if err := m.copyBlobs(ctx); err != nil {
		return err
	}
	m.done.Blobs -= m.gone.Load()
	if m.o.Last == nil {
		return nil
	}
	if err := m.o.Last(); err != nil {
		return err
	}
	if err := m.out.Finish(ctx); err != nil {
		return err
	}
	m.done.Finished = true
	return nil
}

func (m *move) metadata(ctx context.Context) error {
	err := m.held.eachPage(ctx, func(page *admin.BackupPage) error {
		for i := range page.Keys {
			if err := m.out.Put(ctx, page.Keys[i], page.Values[i]); err != nil {
				return err
			}
		}
		for _, x := range page.Blobs {
			if err := m.names.add(x); err != nil {
				return err
			}
		}
		m.done.Records += int64(len(page.Keys))
		m.done.Secrets = page.Secrets
		m.tell(func(p *Progress) { p.Records = m.done.Records })
		return nil
	})
	if err != nil {
		return err
	}
	m.done.Changed, err = m.out.End(ctx)
	return err
}

// compare finds the blobs that the new store has not, and removes those that it has
// and no file of the instant.
func (m *move) compare(ctx context.Context) error {
	there := present{blobs: m.target.Blobs, others: m.removeBlob}
	err := m.names.each(func(x vfs.BackupBlob) error {
		m.done.Blobs++
		m.done.Bytes += x.Size
		has, err := there.find(ctx, x.ID)
		if err != nil {
			return err
		}
		differs, err := m.out.Differs(ctx, x)
		switch {
		case err != nil:
			return err
		case has != nil && has.Size == x.Size && !differs:
			return nil
		case has != nil: // of another history
			if err := m.target.Blobs.Delete(ctx, x.ID); err != nil {
				return err
			}
		}
		return m.missing.add(x)
	})
	if err == nil {
		err = there.rest(ctx)
	}
	if err == nil {
		err = m.removeBlobs(ctx)
	}
	if err == nil {
		err = m.out.Compared(ctx)
	}
	if err != nil {
		return err
	}
	u, err := m.target.Blobs.Usage(ctx)
	if err == nil && u.Total > 0 && u.Free < m.missing.bytes {
		err = fmt.Errorf("%w: %d bytes of blobs are to be moved, and it has %d bytes free", ErrNoRoom, m.missing.bytes, u.Free)
	}
	return err
}

// removeAtATime bounds the blobs of one request to the new store.
const removeAtATime = 1000

func (m *move) removeBlob(ctx context.Context, id cluster.BlobID) error {
	if m.remove = append(m.remove, id); len(m.remove) < removeAtATime {
		return nil
	}
	return m.removeBlobs(ctx)
}

func (m *move) removeBlobs(ctx context.Context) error {
	if len(m.remove) == 0 {
		return nil
	}
	err := m.target.Blobs.Delete(ctx, m.remove...)
	m.done.RemovedBlobs += int64(len(m.remove))
	m.remove = nil
	return err
}
