package users

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/seal"
)

const (
	// cacheEntries bounds the cache of access keys: 4096 of them take
	// about a MiB, and a gateway with more active keys still only pays one
	// read for each miss.
	cacheEntries = 4096
	// cacheTTL is how long another gateway's change to a user may stay
	// unseen where the cluster is shared.
	cacheTTL = time.Second
)

// Holder is an access key and who holds it, as one snapshot had them. All who ask share
// it: it is never changed.
type Holder struct {
	User User // without the user's keys
	Key  AccessKey
	read time.Time // zero where no other process changes the store
}

// cache remembers who holds an access key, because every signed request
// asks. Local changes empty it; in a shared cluster entries expire as well.
type cache struct {
	mu      sync.RWMutex
	entries map[string]*Holder
	changes uint64 // counts invalidations: a read that began before one is not kept
}

// get returns who holds a key, nil if that is not known, and the changes so far.
func (c *cache) get(keyID string) (h *Holder, changes uint64) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.entries[keyID], c.changes
}

func (c *cache) put(h *Holder, changes uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changes != changes {
		return
	}
	if c.entries == nil || len(c.entries) >= cacheEntries {
		c.entries = make(map[string]*Holder)
	}
	c.entries[h.Key.ID] = h
}

func (c *cache) invalidate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
	c.entries = nil
}

// Holder returns who holds an access key, and that key. It is cached, for at most a
// second where other processes change the store; ErrNoSuchUser, ErrSealed.
func (g *Registry) Holder(ctx context.Context, keyID string) (*Holder, error) {
	h, changes := g.cache.get(keyID)
	// Not the configured clock: a TTL is about real time.
	if h != nil && (!g.shared || time.Since(h.read) < cacheTTL) {
		return h, nil
	}
	h, err := g.readHolder(ctx, keyID)
	if err == nil {
		g.cache.put(h, changes)
	}
	return h, err
}

// ByKey is Holder in two copies.
func (g *Registry) ByKey(ctx context.Context, keyID string) (User, AccessKey, error) {
	h, err := g.Holder(ctx, keyID)
	if err != nil {
		return User{}, AccessKey{}, err
	}
	return h.User, h.Key, nil
}

// readHolder is Holder without the cache.
func (g *Registry) readHolder(ctx context.Context, keyID string) (*Holder, error) {
	h := &Holder{}
	if g.shared {
		h.read = time.Now() // before what it is about
	}
	err := g.store.View(ctx, func(r cluster.Reader) (err error) {
		h.User, err = g.keyHolder(r, keyID)
		return err
	})
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(h.User.Keys, func(k AccessKey) bool { return k.ID == keyID })
	if i < 0 {
		return nil, fmt.Errorf("%w: access key %q is not among those of user %q", fserr.ErrCorrupt, keyID, h.User.Name)
	}
	if h.User.Keys[i].Secret == "" {
		return nil, fmt.Errorf("access key %q: %w %s", keyID, fserr.ErrSealed, seal.KeyID([]byte(h.User.SealedSecret(keyID))))
	}
	h.Key, h.User.Keys = h.User.Keys[i], nil
	return h, nil
}
