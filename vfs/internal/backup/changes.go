package backup

import (
	"context"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

const (
	// maxChanges and maxChangedBytes bound one transaction of changes, where an engine
	// takes more.
	maxChanges      = 512
	maxChangedBytes = 1 << 20
	// markBytes is more than a superblock takes in which a restore is not finished.
	markBytes = cluster.MaxKeyBytes + 512
)

// changes are written in transactions as large as the engine takes them.
type changes struct {
	kv    cluster.KV
	set   []kept
	drop  [][]byte
	bytes int
}

func (c *changes) count() int { return len(c.set) + len(c.drop) }

// room reports whether a pair of so many bytes goes with the others.
func (c *changes) room(bytes int) bool {
	most := cluster.Limits{Ops: maxChanges, Bytes: maxChangedBytes}
	l := c.kv.Limits()
	if l.Ops > 0 {
		most.Ops = min(most.Ops, l.Ops-1)
	}
	if l.Bytes > 0 {
		most.Bytes = min(most.Bytes, l.Bytes-markBytes)
	}
	return c.count() == 0 || c.count() < most.Ops && c.bytes+bytes <= most.Bytes
}

func (c *changes) put(k, v []byte) {
	c.set = append(c.set, kept{k, v})
	c.bytes += len(k) + len(v)
}

func (c *changes) remove(k []byte) {
	c.drop = append(c.drop, k)
	c.bytes += len(k)
}

// write writes them, with a superblock if there is one.
func (c *changes) write(ctx context.Context, super []byte) error {
	if c.count() == 0 && super == nil {
		return nil
	}
	err := c.kv.Update(cluster.Relaxed(ctx), func(t cluster.Txn) error {
		for _, k := range c.drop {
			if err := t.Delete(k); err != nil {
				return err
			}
		}
		for _, p := range c.set {
			if err := t.Set(p.key, p.value); err != nil {
				return err
			}
		}
		if super == nil {
			return nil
		}
		return t.Set(record.SuperKey(), super)
	})
	c.set, c.drop, c.bytes = nil, nil, 0
	return fserr.Map(err)
}
