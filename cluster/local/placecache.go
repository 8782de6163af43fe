package local

import (
	"container/list"
	"sync"
	"sync/atomic"
	"time"

	"ogw/cluster"
)

const (
	// placeShards spreads the locks of the cache.
	placeShards = 16
	// placeCacheBytes bounds the cache of places and block checksums in all:
	// the checksums of 128 GiB in large blobs.
	placeCacheBytes = 16 << 20
	// placeOverheadBytes is what an entry costs besides its checksums.
	placeOverheadBytes = 256
)

// placeCache remembers places with their block checksums.
type placeCache struct {
	shards [placeShards]placeShard
}

type placeShard struct {
	mu      sync.Mutex
	entries map[cluster.BlobID]*list.Element
	order   list.List // of *cachedPlace, the longest unused first
	bytes   int
	epoch   uint64 // grows with every drop
}

type cachedPlace struct {
	id cluster.BlobID
	place
	// verified is when each block of a file was last read whole and right, in
	// ticks; nil for blobs in segments.
	verified []atomic.Uint32
}

func newCachedPlace(id cluster.BlobID, p place) *cachedPlace {
	c := &cachedPlace{id: id, place: p}
	if p.segment == 0 {
		c.verified = make([]atomic.Uint32, len(p.blocks))
	}
	return c
}

func (c *cachedPlace) bytes() int {
	return placeOverheadBytes + crcBytes*len(c.blocks) + verifiedBytes*len(c.verified)
}

const (
	// verifiedBytes is the memory of one element of verified.
	verifiedBytes = 4
	// verifiedFor bounds how long a part of a block may be read without the
	// rest, after the block was verified: programs that read here and there
	// in a file would otherwise read and verify 64 KiB for every 4. Only
	// files count, which hold one blob for as long as they live; a segment's
	// space may hold another by then.
	verifiedFor = 10 * time.Second
)

// tick is the wall clock in seconds: where it jumps, blocks are verified anew.
func tick() uint32 { return uint32(time.Now().Unix()) }

func (c *cachedPlace) markVerified(block int64) {
	if c.verified != nil {
		c.verified[block].Store(tick())
	}
}

// trusted tells whether a block was verified a short while ago.
func (c *cachedPlace) trusted(block int64) bool {
	if c.verified == nil {
		return false
	}
	at := c.verified[block].Load()
	return at != 0 && tick()-at < uint32(verifiedFor/time.Second)
}

func newPlaceCache() *placeCache {
	c := &placeCache{}
	for i := range c.shards {
		c.shards[i].entries = make(map[cluster.BlobID]*list.Element)
	}
	return c
}

func (c *placeCache) shard(id cluster.BlobID) *placeShard {
	return &c.shards[(id.Content+id.Seq)%placeShards]
}

// get returns the place, or what put needs to store it later.
func (c *placeCache) get(id cluster.BlobID) (found *cachedPlace, epoch uint64) {
	s := c.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[id]; e != nil {
		s.order.MoveToBack(e)
		return e.Value.(*cachedPlace), s.epoch
	}
	return nil, s.epoch
}

// put stores what was looked up after get returned epoch, unless something
// was dropped since: it might be this.
func (c *placeCache) put(p *cachedPlace, epoch uint64) {
	s := c.shard(p.id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epoch != epoch || s.entries[p.id] != nil {
		return
	}
	s.entries[p.id] = s.order.PushBack(p)
	s.bytes += p.bytes()
	for s.bytes > placeCacheBytes/placeShards {
		s.removeElement(s.order.Front())
	}
}

// drop forgets a blob that was moved or deleted.
func (c *placeCache) drop(id cluster.BlobID) {
	s := c.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch++
	if e := s.entries[id]; e != nil {
		s.removeElement(e)
	}
}

func (s *placeShard) removeElement(e *list.Element) {
	p := s.order.Remove(e).(*cachedPlace)
	delete(s.entries, p.id)
	s.bytes -= p.bytes()
}
