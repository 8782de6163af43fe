package vfs

import (
	"context"
	"errors"
	"hash/maphash"
	"sync/atomic"

	"ogw/cluster"
)

const (
	// keySlots is how many pairs are remembered; two that share a slot
	// displace each other. An object is three or four pairs.
	keySlots = 1 << 15
	// keyCacheBytes bounds what they hold together.
	keyCacheBytes = 32 << 20
	// keyOverheadBytes is what a pair takes besides its bytes.
	keyOverheadBytes = 96
	// maxCachedValue keeps a few large values from displacing all others.
	maxCachedValue = 64 << 10
)

// keyCache remembers pairs of the store that were read last, so that reading
// a small object again takes no snapshot and no lookup. A pair is valid while
// the clock says so, and all is empty wherever another process may change the
// store (see Exclusive).
type keyCache struct {
	off   bool
	clock changeClock
	seed  maphash.Seed
	slots [keySlots]atomic.Pointer[keyEntry]
	bytes atomic.Int64
	hand  atomic.Uint32 // next slot to empty for space
}

// keyEntry is immutable.
type keyEntry struct {
	key   string
	value []byte // nil: the store has no such key
	slot  uint32 // of the clock
	stamp uint64 // of the clock, before the snapshot that it is from
}

func (e *keyEntry) size() int64 {
	if e == nil {
		return 0
	}
	return int64(len(e.key) + len(e.value) + keyOverheadBytes)
}

func (c *keyCache) init(off bool) {
	c.off = off
	c.seed = maphash.MakeSeed()
}

// hash returns where a key is remembered, and its slot of the clock: what an
// inode's attributes are made of shares one.
func (c *keyCache) hash(key []byte) (at, slot uint32) {
	h := maphash.Bytes(c.seed, key)
	at = uint32(h % keySlots)
	if len(key) == 9 && (key[0] == tabInode || key[0] == tabDirTime) {
		return at, inodeSlot(keyIno(key))
	}
	return at, uint32((h >> 32) % clockSlots)
}

// get returns what is remembered of key, valid or not, or nil.
func (c *keyCache) get(key []byte) *keyEntry {
	at, _ := c.hash(key)
	if e := c.slots[at].Load(); e != nil && e.key == string(key) {
		return e
	}
	return nil
}

func (c *keyCache) valid(e *keyEntry) bool { return c.clock.quiet(e.slot, e.stamp) }

// put remembers what a snapshot said that was taken when the clock stood at
// stamp or later.
func (c *keyCache) put(key, value []byte, stamp uint64) {
	at, slot := c.hash(key)
	if len(value) > maxCachedValue || untracked(key) || !c.clock.quiet(slot, stamp) {
		return
	}
	old := c.slots[at].Load()
	if old != nil && old.key == string(key) && c.valid(old) {
		return
	}
	e := &keyEntry{key: string(key), value: value, slot: slot, stamp: stamp}
	if !c.slots[at].CompareAndSwap(old, e) {
		return // another reader was faster
	}
	c.bytes.Add(e.size() - old.size())
	for i := 0; i < keySlots && c.bytes.Load() > keyCacheBytes; i++ {
		c.bytes.Add(-c.slots[c.hand.Add(1)%keySlots].Swap(nil).size())
	}
}

// untracked tells of the keys that are also written outside of update.
func untracked(key []byte) bool { return key[0] == tabCounter || key[0] == tabSuper }

// clear forgets all.
func (c *keyCache) clear() {
	for i := range c.slots {
		c.bytes.Add(-c.slots[i].Swap(nil).size())
	}
}

// errNotCached ends a function that asks for more than is remembered.
var errNotCached = errors.New("not in the cache of keys")

// viewHot is view for what is read again and again by key: it runs fn on
// what is remembered, and on a snapshot if that is not all that fn asks for,
// or no longer true. So fn may run twice, and does not own what it gets.
func (fs *FS) viewHot(ctx context.Context, fn func(r cluster.Reader) error) error {
	c := &fs.keys
	if c.off {
		return fs.view(ctx, fn)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	hot := hotReader{c: c}
	if err := fn(&hot); !hot.missed && hot.holds() {
		return mapErr(err)
	}
	ctx = fs.durably(ctx)
	rec := tracingReader{got: hot.got[:0]}
	stamp := c.clock.now.Load()
	err := fs.view(ctx, func(r cluster.Reader) error {
		rec.Reader = r
		return fn(&rec)
	})
	// What a relaxed reader saw may not be durable yet.
	if !cluster.IsRelaxed(ctx) {
		for _, e := range rec.got {
			c.put(e.key, e.value, stamp)
		}
	}
	return err
}

// hotReader answers from the cache alone.
type hotReader struct {
	c      *keyCache
	got    []hotPair
	missed bool
}

// hotPair is one that was read.
type hotPair struct {
	key, value []byte
	entry      *keyEntry // that it came from
}

// holds tells that all that was read was the store's at one moment: now.
func (r *hotReader) holds() bool {
	for i := range r.got {
		if !r.c.valid(r.got[i].entry) {
			return false
		}
	}
	return true
}

// Get implements cluster.Reader.
func (r *hotReader) Get(key []byte) ([]byte, error) {
	e := r.c.get(key)
	if e == nil {
		r.missed = true
		return nil, errNotCached
	}
	if r.got == nil {
		r.got = make([]hotPair, 0, 4)
	}
	r.got = append(r.got, hotPair{entry: e})
	return e.value, nil
}

// GetMany implements cluster.Reader.
func (r *hotReader) GetMany(keys [][]byte) ([][]byte, error) {
	values := make([][]byte, len(keys))
	for i, key := range keys {
		var err error
		if values[i], err = r.Get(key); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// Scan implements cluster.Reader: ranges are not remembered.
func (r *hotReader) Scan([]byte, []byte, cluster.ScanOptions, func(key, value []byte) error) error {
	r.missed = true
	return errNotCached
}

// tracingReader notes the pairs that are read by key.
type tracingReader struct {
	cluster.Reader
	got []hotPair
}

// Get implements cluster.Reader.
func (r *tracingReader) Get(key []byte) ([]byte, error) {
	value, err := r.Reader.Get(key)
	if err == nil {
		r.got = append(r.got, hotPair{key: key, value: value})
	}
	return value, err
}

// GetMany implements cluster.Reader.
func (r *tracingReader) GetMany(keys [][]byte) ([][]byte, error) {
	values, err := r.Reader.GetMany(keys)
	if err == nil {
		for i, key := range keys {
			r.got = append(r.got, hotPair{key: key, value: values[i]})
		}
	}
	return values, err
}
