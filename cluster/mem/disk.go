package mem

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"ogw/cluster"
	"ogw/cluster/internal/occ"

	"github.com/tidwall/btree"
)

// Disk is what outlives an engine: see Options.Disk.
type Disk struct {
	mu      sync.RWMutex
	pairs   *occ.Tree // what commits change
	snap    *occ.Tree // an unchanging copy of pairs, or nil when out of date
	durable *occ.Tree // what a power cut leaves; nil: all
	blobs   btree.Map[string, *blob]
}

type blob struct {
	data     []byte
	blocks   []uint64 // checksums
	modified time.Time
}

// NewDisk returns an empty Disk.
func NewDisk() *Disk { return &Disk{pairs: occ.NewTree()} }

// PowerCut drops what is not durable. The engine that used the disk must be
// closed or not be used any more.
func (d *Disk) PowerCut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.durable != nil {
		d.pairs, d.snap, d.durable = d.durable, nil, nil
	}
}

// sync makes all durable.
func (d *Disk) sync() {
	d.mu.Lock()
	d.durable = nil
	d.mu.Unlock()
}

func (d *Disk) snapshot() *occ.Tree {
	d.mu.RLock()
	snap := d.snap
	d.mu.RUnlock()
	if snap != nil {
		return snap
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.snap == nil {
		d.snap = d.pairs.Copy()
	}
	return d.snap
}

// apply writes what t wrote.
func (d *Disk) apply(t *occ.Txn, relaxed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case !relaxed:
		d.durable = nil
	case d.durable == nil:
		d.durable = d.pairs.Copy()
	}
	d.snap = nil
	_ = t.Writes(func(p occ.Pair) error {
		if p.Deleted {
			d.pairs.Delete(p)
		} else {
			p.Value = slices.Clone(p.Value)
			d.pairs.Set(p)
		}
		return nil
	})
}

// CorruptBlob flips one bit of a stored blob at offset, for tests. It
// returns false when there is no such byte.
func (d *Disk) CorruptBlob(id cluster.BlobID, offset int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	b, ok := d.blobs.Get(string(id.Append(nil)))
	if !ok || offset < 0 || offset >= int64(len(b.data)) {
		return false
	}
	damaged := *b
	damaged.data = bytes.Clone(b.data)
	damaged.data[offset] ^= 1
	d.blobs.Set(string(id.Append(nil)), &damaged)
	return true
}
