package backup

import (
	"bytes"
	"context"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
	"ogw/vfs/seal"
)

const (
	// aheadBytes and aheadPairs bound what a Move has read ahead of the store, but for the
	// last pair.
	aheadBytes = 1 << 20
	aheadPairs = 512
)

// MoveConfig of a Move.
type MoveConfig struct {
	// FSID names the store that is moved: a move that was interrupted goes on with the
	// same.
	FSID uint64
	// Opens opens the secrets that the backup sealed. They are then sealed with Keys,
	// or in clear without.
	Opens, Keys *seal.Keyring
}

// Move makes a store what Backup.Pairs returned of another one, and that again and
// again: a pass writes what differs, and removes what is not there any more. The store
// is none before the last pass finishes it. The blobs are the caller's. It is for one
// goroutine, and one pass.
type Move struct {
	restore Restore
	doubts  doubts

	there []kept // pairs of the store, behind those that were passed
	next  []byte // where those behind them begin; nil: nowhere

	changes changes // not written yet
	changed int64
}

// BeginMove begins a pass. It returns ErrExist if the store holds something else, and
// cluster.ErrMismatch if its blobs belong to another one.
func BeginMove(ctx context.Context, c *cluster.Cluster, o MoveConfig) (*Move, error) {
	m := &Move{restore: Restore{kv: c.KV}, doubts: newDoubts(c.KV), next: []byte{0}, changes: changes{kv: c.KV}}
	name := fmt.Sprintf("%016x", o.FSID)
	m.restore.cfg = RestoreConfig{Snapshot: name, Opens: o.Opens, Keys: o.Keys}
	m.restore.moves = true
	found, empty, err := lookAt(ctx, c)
	if err != nil {
		return nil, err
	}
	if !empty {
		if s, err := record.DecodeSuper(found); err == nil && s.FSID == o.FSID {
			return nil, fmt.Errorf("%w: store %s is here already: its move has ended, or it was restored here", fserr.ErrExist, name)
		}
		if _, err := checkFound(found, m.restore.newMarker()); err != nil {
			return nil, err
		}
	}
	return m, fserr.Map(m.claim(ctx, c.Blobs, o.FSID))
}

// claim marks the store. Blobs that are of another one refuse it here, and not only when
// the last pass is over and the store is opened.
func (m *Move) claim(ctx context.Context, blobs cluster.Blobs, fsid uint64) error {
	var known uint64
	err := m.restore.kv.View(ctx, func(r cluster.Reader) (err error) {
		known, err = record.Counter(r, record.CounterClaims)
		return err
	})
	if err != nil {
		return err
	}
	before, now, err := cluster.ClaimBlobs(ctx, blobs, fsid, known)
	if err != nil {
		return err
	}
	if known == 0 && before > 0 { // a pass would remove what it does not know
		return fmt.Errorf("%w: its blobs are where this very store has, or had, its own: it needs a bucket or pool in which nothing is", fserr.ErrExist)
	}
	return m.restore.kv.Update(cluster.Strict(ctx), func(t cluster.Txn) error {
		if now != known {
			if err := record.SetCounter(t, record.CounterClaims, now); err != nil {
				return err
			}
		}
		return t.Set(record.SuperKey(), m.restore.marker())
	})
}

// Put has the store hold a pair. All pairs are passed, in the order of their keys; what
// is passed stays as it is.
func (m *Move) Put(ctx context.Context, k, v []byte) error {
	v, keep, err := m.restore.adapt(k, v)
	if err != nil || !keep {
		return err
	}
	if err := m.pass(ctx, k); err != nil {
		return err
	}
	if len(m.there) > 0 && bytes.Equal(m.there[0].key, k) {
		old := m.there[0].value
		m.there = m.there[1:]
		if bytes.Equal(old, v) {
			return nil
		}
		if err := m.doubt(ctx, k, old, v); err != nil {
			return err
		}
	}
	if err := m.room(ctx, len(k)+len(v)); err != nil {
		return err
	}
	m.changes.put(k, v)
	m.changed++
	return nil
}

// doubt records what a pair named that becomes another, or goes (v is nil).
func (m *Move) doubt(ctx context.Context, k, old, v []byte) error {
	for _, x := range doubtsAbout(k, old, v) {
		key := x.Key()
		if err := m.room(ctx, len(key)); err != nil {
			return err
		}
		m.changes.put(key, []byte{})
	}
	return nil
}

// pass removes the pairs of the store before k (nil: all), which are gone.
func (m *Move) pass(ctx context.Context, k []byte) error {
	for {
		for len(m.there) > 0 && (k == nil || bytes.Compare(m.there[0].key, k) < 0) {
			gone, old := m.there[0].key, m.there[0].value
			m.there = m.there[1:]
			if gone[0] == record.TabSuper || ofMedium(gone) {
				continue
			}
			if err := m.doubt(ctx, gone, old, nil); err != nil {
				return err
			}
			if err := m.room(ctx, len(gone)); err != nil {
				return err
			}
			m.changes.remove(gone)
			m.changed++
		}
		if len(m.there) > 0 || m.next == nil {
			return nil
		}
		if err := m.load(ctx); err != nil {
			return err
		}
	}
}

// load reads pairs of the store ahead. What this pass has not written yet lies before
// them.
func (m *Move) load(ctx context.Context) error {
	from := m.next
	err := m.restore.kv.View(cluster.Relaxed(ctx), func(r cluster.Reader) error {
		m.there, m.next = nil, nil
		read := 0
		return r.Scan(from, []byte{0xff}, cluster.ScanOptions{}, func(k, v []byte) error {
			m.there = append(m.there, kept{bytes.Clone(k), bytes.Clone(v)})
			if read += len(k) + len(v); read >= aheadBytes || len(m.there) == aheadPairs {
				m.next = append(bytes.Clone(k), 0)
				return cluster.ErrStop
			}
			return nil
		})
	})
	return fserr.Map(err)
}

// room writes what waits, if so many bytes do not go with it.
func (m *Move) room(ctx context.Context, bytes int) error {
	if m.changes.room(bytes) {
		return nil
	}
	return m.flush(ctx)
}

func (m *Move) flush(ctx context.Context) error { return m.changes.write(ctx, nil) }

// End comes behind the last Put. It returns how many pairs were written or removed. They
// are durable: a blob that is copied after it stays no longer than the record that names it.
func (m *Move) End(ctx context.Context) (changed int64, err error) {
	err = m.pass(ctx, nil)
	if err == nil {
		err = m.flush(ctx)
	}
	if err == nil {
		err = fserr.Map(m.restore.kv.Sync(ctx))
	}
	return m.changed, err
}

// Differs comes behind End, for the blobs of the instant in the order of their IDs. It
// reports whether one that is there under the same name can be another one, whatever its
// length: the store that is moved was set back to an earlier time.
func (m *Move) Differs(ctx context.Context, b Blob) (bool, error) { return m.doubts.differ(ctx, b) }

// Compared comes when those that differ are removed, before one is copied.
func (m *Move) Compared(ctx context.Context) error { return m.doubts.settle(ctx) }

// Finish makes it a store. All blobs are there.
func (m *Move) Finish(ctx context.Context) error { return m.restore.Finish(ctx) }
