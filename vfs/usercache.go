package vfs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/record"
	"ogw/vfs/seal"
)

const (
	// userCacheEntries bounds the cache of access keys: 4096 of them take
	// about a MiB, and a gateway with more active keys still only pays one
	// read for each miss.
	userCacheEntries = 4096
	// userCacheTTL is how long another gateway's change to a user may stay
	// unseen where the cluster is shared.
	userCacheTTL = time.Second
)

// userCache remembers who holds an access key, because every signed request
// asks. Local changes empty it; in a shared cluster entries expire as well.
type userCache struct {
	mu      sync.Mutex
	entries map[string]cachedUser
	changes uint64 // counts invalidations: a read that began before one is not kept
}

type cachedUser struct {
	user User
	read time.Time
}

func (c *userCache) get(keyID string, now time.Time, expires bool) (u User, changes uint64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[keyID]
	if ok && expires && now.Sub(e.read) >= userCacheTTL {
		ok = false
	}
	return e.user, c.changes, ok
}

func (c *userCache) put(keyID string, u User, now time.Time, changes uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changes != changes {
		return
	}
	if c.entries == nil || len(c.entries) >= userCacheEntries {
		c.entries = make(map[string]cachedUser)
	}
	c.entries[keyID] = cachedUser{u, now}
}

func (c *userCache) invalidate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
	c.entries = nil
}

// UserByKey returns the user who holds an access key, without the user's keys,
// and that key. It is cached for at most a second in shared clusters; ErrNoSuchUser, ErrSealed.
func (fs *FS) UserByKey(ctx context.Context, keyID string) (User, AccessKey, error) {
	now := time.Now() // not the configured clock: a TTL is about real time
	u, changes, ok := fs.users.get(keyID, now, !fs.clu.Exclusive)
	if !ok {
		err := fs.view(ctx, func(r cluster.Reader) error {
			id, err := r.Get(record.AccessKey(keyID))
			if err != nil || id == nil {
				return noUser(err, "access key %q", keyID)
			}
			u, err = fs.userByID(r, UserID(id))
			return err
		})
		if err != nil {
			return User{}, AccessKey{}, err
		}
		fs.users.put(strings.Clone(keyID), u, now, changes) // it is a part of a header
	}
	i := slices.IndexFunc(u.Keys, func(k AccessKey) bool { return k.ID == keyID })
	if i < 0 {
		return User{}, AccessKey{}, fmt.Errorf("%w: access key %q is not among those of user %q", ErrCorrupt, keyID, u.Name)
	}
	if sealed := u.locked[keyID]; u.Keys[i].Secret == "" {
		return User{}, AccessKey{}, fmt.Errorf("access key %q: %w %s", keyID, ErrSealed, seal.KeyID([]byte(sealed)))
	}
	key := u.Keys[i]
	u.Keys = nil // the cache's
	return u, key, nil
}
