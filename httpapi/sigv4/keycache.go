package sigv4

import (
	"crypto/subtle"
	"strings"
	"sync"
)

// maxCachedKeys bounds the cache: users of one day, at about 200 bytes each,
// 500 with the longest access keys and regions. A larger crowd recomputes,
// which costs four HMACs.
const maxCachedKeys = 4096

// keyCache keeps signing keys, which depend on secret, day and region only.
// The zero value is ready.
type keyCache struct {
	mu   sync.RWMutex
	keys map[keyID]cachedKey
}

type keyID struct{ accessKey, date, region string }

type cachedKey struct {
	secret string // a rotated secret must not verify
	key    []byte
}

// get returns the signing key of a scope if it is known; the caller must not
// change it.
func (c *keyCache) get(id keyID, secret string) ([]byte, bool) {
	c.mu.RLock()
	k, ok := c.keys[id]
	c.mu.RUnlock()
	if !ok || subtle.ConstantTimeCompare([]byte(k.secret), []byte(secret)) == 0 {
		return nil, false
	}
	return k.key, true
}

// put keeps the key of a scope whose signature was found right: what a
// stranger claims is never kept. The strings of id are parts of a header.
func (c *keyCache) put(id keyID, secret string, key []byte) {
	id = keyID{strings.Clone(id.accessKey), strings.Clone(id.date), strings.Clone(id.region)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.keys == nil || len(c.keys) >= maxCachedKeys {
		c.keys = make(map[keyID]cachedKey)
	}
	c.keys[id] = cachedKey{secret, key}
}

func signingKey(secret, date, region string) []byte {
	k := hmacSHA256([]byte("AWS4"+secret), []byte(date))
	k = hmacSHA256(k, []byte(region))
	k = hmacSHA256(k, []byte(service))
	return hmacSHA256(k, []byte(terminator))
}
