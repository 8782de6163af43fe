package sigv4

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"hash"
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
	key    *signingKey
}

// get returns the signing key of a scope, nil if it is not known.
func (c *keyCache) get(id keyID, secret string) *signingKey {
	c.mu.RLock()
	k, ok := c.keys[id]
	c.mu.RUnlock()
	if !ok || subtle.ConstantTimeCompare([]byte(k.secret), []byte(secret)) == 0 {
		return nil
	}
	return k.key
}

// put keeps the key of a scope whose signature was found right: what a
// stranger claims is never kept. The strings of id are parts of a header.
func (c *keyCache) put(id keyID, secret string, key *signingKey) {
	id = keyID{strings.Clone(id.accessKey), strings.Clone(id.date), strings.Clone(id.region)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.keys == nil || len(c.keys) >= maxCachedKeys {
		c.keys = make(map[keyID]cachedKey)
	}
	c.keys[id] = cachedKey{secret, key}
}

// signingKey is the key of a scope.
type signingKey struct {
	key  []byte
	macs sync.Pool // of *scopedMAC
}

// scopedMAC computes signatures with one key, and has room for one and for the
// string that is signed.
type scopedMAC struct {
	hash.Hash
	text [256]byte
	sum  [sha256.Size]byte
}

func newSigningKey(secret, date, region, service string) *signingKey {
	k := hmacSHA256([]byte("AWS4"+secret), []byte(date))
	k = hmacSHA256(k, []byte(region))
	k = hmacSHA256(k, []byte(service))
	return &signingKey{key: hmacSHA256(k, []byte(terminator))}
}

// borrow returns a MAC to be given back with macs.Put.
func (k *signingKey) borrow() *scopedMAC {
	if m, ok := k.macs.Get().(*scopedMAC); ok {
		return m
	}
	return &scopedMAC{Hash: hmac.New(sha256.New, k.key)}
}

// signed reports whether sum is the signature of text, in constant time.
func (m *scopedMAC) signed(text, sum []byte) bool {
	m.Reset()
	m.Write(text)
	return hmac.Equal(sum, m.Sum(m.sum[:0]))
}
