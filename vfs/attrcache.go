package vfs

import (
	"context"
	"sync/atomic"

	"ogw/cluster"
)

const (
	// attrSlots is how many inodes are remembered, about 400 bytes each; two
	// that share a slot displace each other.
	attrSlots = 1 << 14
	// recordSlots is how many counters all inodes share: so many that the
	// changes of some rarely make others be read again.
	recordSlots = 1 << 16
)

// attrCache remembers the stored records of inodes that were asked for last.
// A record is valid while the counter of its inode stands still: a
// transaction counts every inode record that it writes before it commits,
// and once more when it is over. So nothing has to be told to the cache, and
// it is empty wherever another process may change the store (see Exclusive).
type attrCache struct {
	off     bool
	records [recordSlots]struct{ begun, ended atomic.Uint64 }
	slots   [attrSlots]atomic.Pointer[attrEntry]
}

// attrEntry is immutable.
type attrEntry struct {
	n       *inode
	dirTime []byte
	begun   uint64 // counter when it was read
}

// counter returns the counter of an inode, and whether no transaction that
// changes it is under way.
func (c *attrCache) counter(ino Ino) (begun uint64, quiet bool) {
	s := &c.records[ino%recordSlots]
	ended := s.ended.Load() // first: equality then means that none is under way
	begun = s.begun.Load()
	return begun, begun == ended
}

// get returns the entry of ino if it is what the store holds now.
func (c *attrCache) get(ino Ino) *attrEntry {
	if c.off {
		return nil
	}
	e := c.slots[ino%attrSlots].Load()
	if e == nil || e.n.ino != ino {
		return nil
	}
	if begun, quiet := c.counter(ino); !quiet || begun != e.begun {
		return nil
	}
	return e
}

// put remembers a record that was read when the counter stood at begun and
// no change was under way.
func (c *attrCache) put(e *attrEntry) { c.slots[e.n.ino%attrSlots].Store(e) }

func (c *attrCache) forget(ino Ino) {
	s := &c.slots[ino%attrSlots]
	if e := s.Load(); e != nil && e.n.ino == ino {
		s.CompareAndSwap(e, nil)
	}
}

// TryAttr is GetAttr for who must not wait: ok tells whether the answer is
// known without asking the store.
func (fs *FS) TryAttr(ino Ino) (a Attr, ok bool) {
	e := fs.attrs.get(ino)
	if e == nil {
		return Attr{}, false
	}
	a, err := fs.attrWith(e.n, e.dirTime)
	// What is not flushed stands in the open file, and moves to the store
	// while the counter runs.
	return a, err == nil && fs.attrs.get(ino) == e
}

// attrFor returns the attributes of an inode; ErrStale.
func (fs *FS) attrFor(ctx context.Context, ino Ino) (a Attr, err error) {
	if a, ok := fs.TryAttr(ino); ok {
		return a, nil
	}
	for mark := fs.opens.mark(); ; mark = fs.opens.mark() {
		a, err = fs.readAttr(ctx, ino)
		if err != nil || !fs.opens.leftSince(mark, ino) {
			return a, err
		}
	}
}

// readAttr is attrFor by one snapshot; what was flushed and closed meanwhile
// may be missing.
func (fs *FS) readAttr(ctx context.Context, ino Ino) (a Attr, err error) {
	begun, quiet := fs.attrs.counter(ino)
	var e *attrEntry
	err = fs.view(ctx, func(r cluster.Reader) error {
		n, dirTime, err := getInodeAndTime(r, ino, true)
		if err != nil {
			return err
		}
		if n == nil {
			return ErrStale
		}
		e = &attrEntry{n, dirTime, begun}
		a, err = fs.attrWith(n, dirTime)
		return err
	})
	// What a relaxed reader saw may not be durable yet.
	if err == nil && quiet && !fs.attrs.off && !cluster.IsRelaxed(ctx) {
		if now, _ := fs.attrs.counter(ino); now == begun {
			fs.attrs.put(e)
		}
	}
	return a, err
}

// recordingTxn is a transaction that counts the inode records which it writes.
type recordingTxn struct {
	cluster.Txn
	c       *attrCache
	touched []Ino
}

// Set implements cluster.Txn.
func (r *recordingTxn) Set(key, value []byte) error {
	r.touch(key)
	return r.Txn.Set(key, value)
}

// Delete implements cluster.Txn.
func (r *recordingTxn) Delete(key []byte) error {
	r.touch(key)
	return r.Txn.Delete(key)
}

func (r *recordingTxn) touch(key []byte) {
	if len(key) == 9 && (key[0] == tabInode || key[0] == tabDirTime) {
		ino := keyIno(key)
		r.c.records[ino%recordSlots].begun.Add(1)
		r.touched = append(r.touched, ino)
	}
}

// end counts the end of all that was touched, by every attempt.
func (r *recordingTxn) end() {
	for _, ino := range r.touched {
		r.c.records[ino%recordSlots].ended.Add(1)
	}
}
