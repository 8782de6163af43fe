package iam

import (
	"strings"
	"sync"

	"ogw/vfs/users"
)

const (
	// cacheBytes bounds the compiled sets, by their texts: 8 MiB of text take about
	// 24 MiB compiled. Some 4,000 users with usual policies fit, and those of more
	// are read again.
	cacheBytes = 8 << 20
	// setBytes is what a set takes beside, an empty one too.
	setBytes = 256
)

// cache keeps the sets of one revision. The zero value is ready.
type cache struct {
	mu       sync.RWMutex
	revision string
	sets     map[users.ID]*Set // nil: neither policies nor a boundary
	bytes    int
}

// get returns the set of a user at a revision.
func (c *cache) get(revision []byte, id users.ID) (s *Set, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.revision != string(revision) {
		return nil, false
	}
	s, ok = c.sets[id]
	return s, ok
}

// put keeps a set; those of another revision go.
func (c *cache) put(revision []byte, id users.ID, s *Set) {
	cost := setBytes
	if s != nil {
		cost += s.bytes
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.revision != string(revision) || c.sets == nil || c.bytes+cost > cacheBytes {
		c.revision, c.sets, c.bytes = string(revision), make(map[users.ID]*Set), 0
	}
	if _, ok := c.sets[id]; !ok {
		c.sets[users.ID(strings.Clone(string(id)))] = s
		c.bytes += cost
	}
}
