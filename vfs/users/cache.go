package users

import (
	"context"
	"fmt"
	"slices"
	"strings"
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

// cache remembers who holds an access key, because every signed request
// asks. Local changes empty it; in a shared cluster entries expire as well.
type cache struct {
	mu      sync.Mutex
	entries map[string]cachedUser
	changes uint64 // counts invalidations: a read that began before one is not kept
}

type cachedUser struct {
	user User
	read time.Time
}

func (c *cache) get(keyID string, now time.Time, expires bool) (u User, changes uint64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[keyID]
	if ok && expires && now.Sub(e.read) >= cacheTTL {
		ok = false
	}
	return e.user, c.changes, ok
}

func (c *cache) put(keyID string, u User, now time.Time, changes uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changes != changes {
		return
	}
	if c.entries == nil || len(c.entries) >= cacheEntries {
		c.entries = make(map[string]cachedUser)
	}
	c.entries[keyID] = cachedUser{u, now}
}

func (c *cache) invalidate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
	c.entries = nil
}

// ByKey returns the user who holds an access key, without the user's keys,
// and that key. It is cached, for at most a second where other processes change
// the store; ErrNoSuchUser, ErrSealed.
func (g *Registry) ByKey(ctx context.Context, keyID string) (User, AccessKey, error) {
	now := time.Now() // not the configured clock: a TTL is about real time
	u, changes, ok := g.cache.get(keyID, now, g.shared)
	if !ok {
		err := g.store.View(ctx, func(r cluster.Reader) (err error) {
			u, err = g.keyHolder(r, keyID)
			return err
		})
		if err != nil {
			return User{}, AccessKey{}, err
		}
		g.cache.put(strings.Clone(keyID), u, now, changes) // it is a part of a header
	}
	i := slices.IndexFunc(u.Keys, func(k AccessKey) bool { return k.ID == keyID })
	if i < 0 {
		return User{}, AccessKey{}, fmt.Errorf("%w: access key %q is not among those of user %q", fserr.ErrCorrupt, keyID, u.Name)
	}
	if u.Keys[i].Secret == "" {
		return User{}, AccessKey{}, fmt.Errorf("access key %q: %w %s", keyID, fserr.ErrSealed, seal.KeyID([]byte(u.SealedSecret(keyID))))
	}
	key := u.Keys[i]
	u.Keys = nil // the cache's
	return u, key, nil
}
