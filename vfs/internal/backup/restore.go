package backup

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/secrets"
	"ogw/vfs/seal"
)

// RestoreConfig is what becomes of what a Backup held.
type RestoreConfig struct {
	// Snapshot names what is restored: an interrupted restore goes on with the
	// same.
	Snapshot string
	// Opens opens the secrets that the backup sealed. They are then sealed with
	// Keys, or in clear without. With Opens nil they stay as they are, and so does
	// what it cannot open.
	Opens, Keys *seal.Keyring
	// Copy makes a store of its own, to be used beside the original: with a
	// file-system ID and secrets of its own, and without the NFS clients who
	// would be told of a restart.
	Copy bool
}

// Restore fills an empty store with what Backup.Pairs returned. The blobs are
// the caller's, and come first. It is for one goroutine.
type Restore struct {
	kv    cluster.KV
	cfg   RestoreConfig
	moves bool   // for a Move
	last  []byte // all pairs up to this key are stored
	locks Locked
	super []byte
}

// Locked describes the secrets of a restored store that it cannot open.
type Locked struct {
	Secrets int
	All     int      // secrets, also those that it can open
	Keys    []string // IDs of the keys that seal them
}

// BeginRestore begins, or goes on. It returns ErrExist if the store holds
// something else.
func BeginRestore(ctx context.Context, c *cluster.Cluster, o RestoreConfig) (*Restore, error) {
	r := &Restore{kv: c.KV, cfg: o}
	found, empty, err := lookAt(ctx, c)
	if err != nil {
		return nil, err
	}
	if empty {
		return r, fserr.Map(c.KV.Update(ctx, func(t cluster.Txn) error { return t.Set(record.SuperKey(), r.marker()) }))
	}
	r.last, err = checkFound(found, r.newMarker())
	if err != nil {
		return nil, err
	}
	return r, nil
}

// lookAt returns the superblock of a store, and whether there is nothing.
func lookAt(ctx context.Context, c *cluster.Cluster) (found []byte, empty bool, err error) {
	err = c.KV.View(ctx, func(v cluster.Reader) (err error) {
		empty = true
		if found, err = v.Get(record.SuperKey()); err != nil {
			return err
		}
		return v.Scan([]byte{0}, []byte{0xff}, cluster.ScanOptions{KeysOnly: true}, func(k, _ []byte) error {
			if k[0] == record.TabFence || k[0] == record.TabBeat || k[0] == record.TabRead {
				return nil // this process
			}
			empty = false
			return cluster.ErrStop
		})
	})
	if err == nil && empty {
		err = c.Blobs.List(ctx, cluster.BlobID{}, func(cluster.BlobInfo) error {
			empty = false
			return cluster.ErrStop
		})
	}
	return found, empty, fserr.Map(err)
}

// checkFound reports whether what was found in a store goes on as now: ErrExist if not.
func checkFound(found []byte, now record.Restoring) (last []byte, err error) {
	m, restoring := record.DecodeRestoring(found)
	if !restoring {
		return nil, fmt.Errorf("%w: the store is not empty, and nothing is restored over what is there", fserr.ErrExist)
	}
	if err := checkMarker(&m, now); err != nil {
		return nil, fmt.Errorf("%w: %w", fserr.ErrExist, err)
	}
	return m.Last, nil
}

func (r *Restore) newMarker() record.Restoring {
	m := record.Restoring{Snapshot: r.cfg.Snapshot, Moves: r.moves, Copy: r.cfg.Copy, Recodes: r.cfg.Opens != nil}
	if ids := r.cfg.Keys.IDs(); m.Recodes && len(ids) > 0 {
		m.Key = ids[0]
	}
	return m
}

// checkMarker reports whether a restore may go on as now: the half that is there would
// not fit the other.
func checkMarker(m *record.Restoring, now record.Restoring) error {
	unfinished := "a restore of snapshot %s into this store is not finished: "
	if m.Moves {
		unfinished = "store %s is being moved to this one, which is not finished: "
	}
	sealed := func(m record.Restoring) string {
		switch {
		case !m.Recodes:
			return "as the backup sealed them"
		case m.Key == "":
			return "in clear"
		default:
			return "sealed with key " + m.Key
		}
	}
	switch {
	case m.Snapshot != now.Snapshot || m.Moves != now.Moves:
		return fmt.Errorf(unfinished+"go on with that, or begin with an empty store", m.Snapshot)
	case m.Copy && !now.Copy:
		return fmt.Errorf(unfinished+"it was begun as a copy; go on with --copy, or restore into an empty folder", m.Snapshot)
	case !m.Copy && now.Copy:
		return fmt.Errorf(unfinished+"it was not begun as a copy; go on without --copy, or restore into an empty folder", m.Snapshot)
	case sealed(*m) != sealed(now):
		return fmt.Errorf(unfinished+"secrets were stored %s, and would be %s; go on with the keys of before, or begin with an empty store",
			m.Snapshot, sealed(*m), sealed(now))
	}
	return nil
}

// marker is the superblock of the store for now.
func (r *Restore) marker() []byte {
	m := r.newMarker()
	m.Last = r.last
	return m.Encode()
}

// Put stores pairs. All calls together, those of an interrupted restore included, pass
// all pairs in order; what is there already is skipped. stored counts the others.
func (r *Restore) Put(ctx context.Context, keys, values [][]byte) (stored int, err error) {
	before := r.last
	c := changes{kv: r.kv}
	for i, k := range keys {
		v, keep, err := r.adapt(k, values[i])
		if err != nil {
			return 0, err
		}
		if keep {
			r.noteLocked(k, v)
		}
		if bytes.Compare(k, r.last) <= 0 {
			continue
		}
		if keep {
			if !c.room(len(k) + len(v)) {
				if err := c.write(ctx, r.marker()); err != nil {
					return 0, err
				}
			}
			c.put(k, v)
			stored++
		}
		r.last = k
	}
	if bytes.Equal(before, r.last) {
		return 0, nil
	}
	// The order of commits is that of durability: what the marker states is
	// there, whenever the power goes.
	return stored, c.write(ctx, r.marker())
}

// adapt returns what is stored of a pair.
func (r *Restore) adapt(k, v []byte) (value []byte, keep bool, err error) {
	switch {
	case len(k) == 0:
		return nil, false, fmt.Errorf("%w: a pair without a key", fserr.ErrCorrupt)
	case k[0] == record.TabSuper:
		r.super = v
		return nil, false, nil
	case r.cfg.Copy && (k[0] == record.TabSecret || k[0] == record.TabSetting && strings.HasPrefix(string(k[1:]), "nsm/")):
		return nil, false, nil
	case (k[0] == record.TabUser || k[0] == record.TabSecret) && r.cfg.Opens != nil:
		v, _, err = secrets.Recode(k, v, r.cfg.Opens, r.cfg.Keys, true)
	}
	return v, true, err
}

// noteLocked counts the secrets of a pair that the store cannot open. What is damaged
// stays for those who read it.
func (r *Restore) noteLocked(k, v []byte) {
	if k[0] != record.TabUser && k[0] != record.TabSecret {
		return
	}
	by, all, err := secrets.Locked(k, v, r.cfg.Keys)
	if err != nil {
		return
	}
	r.locks.Secrets += len(by)
	r.locks.All += all
	for _, id := range by {
		if !slices.Contains(r.locks.Keys, id) {
			r.locks.Keys = append(r.locks.Keys, id)
		}
	}
}

// Locked returns what was passed to Put and Keys cannot open.
func (r *Restore) Locked() Locked { return r.locks }

// Finish makes it a store.
func (r *Restore) Finish(ctx context.Context) error {
	s, err := record.DecodeSuper(r.super)
	if err != nil {
		return fmt.Errorf("the snapshot's superblock: %w", err)
	}
	if r.cfg.Copy {
		var id [8]byte
		rand.Read(id[:])
		s.FSID = binary.BigEndian.Uint64(id[:])
	}
	if err := r.kv.Sync(ctx); err != nil {
		return fserr.Map(err)
	}
	return fserr.Map(r.kv.Update(cluster.Strict(ctx), func(t cluster.Txn) error {
		if r.setBack() {
			if err := record.SkipNumbers(t); err != nil {
				return err
			}
		}
		return t.Set(record.SuperKey(), s.Encode())
	}))
}

// setBack reports whether the store becomes one that went on after the instant: what has
// numbers of later is known to NFS clients, and must not be taken for what is made now.
func (r *Restore) setBack() bool { return !r.moves && !r.cfg.Copy }
