package local

import (
	"container/list"
	"sync"

	"ogw/cluster"
	"ogw/cluster/local/internal/record"
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
	record.Place
}

func (c *cachedPlace) bytes() int { return placeOverheadBytes + record.CRCBytes*len(c.Blocks) }

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
