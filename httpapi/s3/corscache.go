package s3

import (
	"crypto/sha256"
	"encoding/json"
	"strings"
	"sync"
)

const (
	// corsCacheBytes bounds the rules that are kept ready, by their texts, of which
	// they take about three times the length: 60 of the longest, and tens of thousands
	// of usual ones.
	corsCacheBytes = 4 << 20
	// corsEntryBytes is what an entry takes beside.
	corsEntryBytes = 256
)

// corsCache keeps the rules of buckets as they were read: every request of a page asks
// for them, before it is known who sent it. A digest stands for one text for good, so no
// entry is ever wrong. The zero value is ready.
type corsCache struct {
	mu      sync.RWMutex
	entries map[[sha256.Size]byte]corsEntry
	bytes   int
}

type corsEntry struct {
	rules *corsConfig
	bytes int
}

// get returns the rules of a text, which nobody changes.
func (c *corsCache) get(text []byte) (*corsConfig, error) {
	digest := sha256.Sum256(text)
	c.mu.RLock()
	e := c.entries[digest]
	c.mu.RUnlock()
	if e.rules != nil {
		return e.rules, nil
	}
	var rules corsConfig
	if err := json.Unmarshal(text, &rules); err != nil {
		return nil, err
	}
	for i := range rules.Rules {
		r := &rules.Rules[i]
		for _, h := range r.Headers {
			r.patterns = append(r.patterns, strings.ToLower(h))
		}
	}
	c.put(digest, corsEntry{&rules, len(text) + corsEntryBytes})
	return &rules, nil
}

// put keeps rules. When there is no room, others go, whichever come first.
func (c *corsCache) put(digest [sha256.Size]byte, e corsEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil {
		c.entries = make(map[[sha256.Size]byte]corsEntry)
	}
	if _, ok := c.entries[digest]; ok {
		return
	}
	for d, old := range c.entries {
		if c.bytes+e.bytes <= corsCacheBytes {
			break
		}
		delete(c.entries, d)
		c.bytes -= old.bytes
	}
	c.entries[digest] = e
	c.bytes += e.bytes
}
