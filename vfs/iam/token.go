package iam

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"sync"

	"ogw/vfs/internal/fserr"
)

// Session tokens are sessions sealed with a secret of the store, so that every process
// of it opens them and none keeps them.

const (
	// secretName is the store's secret that tokens are sealed under.
	secretName = "iam/sessions"
	// tokenPurpose is what the key is derived for, and what the seal covers.
	tokenPurpose = "ogw session 1: AES-256-GCM"
	// maxToken bounds a token: a session policy of the largest size, in base64, and
	// what else a session has.
	maxToken = 8 << 10
	// tokenCacheBytes bounds the sessions that are kept open, by their tokens: some
	// 10,000 without policies.
	tokenCacheBytes = 8 << 20
	// tokenEntryBytes is what an entry takes beside.
	tokenEntryBytes = 512
)

// Errors about tokens.
var (
	// ErrBadToken: not made here, or not for the access key that it came with.
	ErrBadToken = fmt.Errorf("the session token is not valid: %w", fserr.ErrAccess)
	// ErrTokenExpired: the time of the session is over.
	ErrTokenExpired = fmt.Errorf("the session token has expired: %w", fserr.ErrAccess)
)

// sealer seals and opens tokens.
type sealer struct {
	secret func(ctx context.Context, name string) ([]byte, error)

	mu    sync.Mutex // a leaf
	aead  cipher.AEAD
	open  map[string]*Session // by token
	bytes int
}

func (k *sealer) key(ctx context.Context) (cipher.AEAD, error) {
	k.mu.Lock()
	aead := k.aead
	k.mu.Unlock()
	if aead != nil {
		return aead, nil
	}
	secret, err := k.secret(ctx, secretName)
	if err != nil {
		return nil, err
	}
	derived, err := hkdf.Key(sha256.New, secret, nil, tokenPurpose, sha256.Size)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, err
	}
	if aead, err = cipher.NewGCMWithRandomNonce(block); err != nil {
		return nil, err
	}
	k.mu.Lock()
	k.aead = aead
	k.mu.Unlock()
	return aead, nil
}

// seal returns the token of a session.
func (k *sealer) seal(ctx context.Context, s *Session) (string, error) {
	aead, err := k.key(ctx)
	if err != nil {
		return "", err
	}
	token := base64.StdEncoding.EncodeToString(aead.Seal(nil, nil, s.encode(), []byte(tokenPurpose)))
	if len(token) > maxToken {
		return "", fault(PackedPolicyTooLarge, "Serialized token too large for session")
	}
	return token, nil
}

// session opens a token; ErrBadToken.
func (k *sealer) session(ctx context.Context, token string) (*Session, error) {
	k.mu.Lock()
	s := k.open[token]
	k.mu.Unlock()
	if s != nil {
		return s, nil
	}
	if len(token) > maxToken {
		return nil, ErrBadToken
	}
	sealed, err := base64.StdEncoding.DecodeString(token)
	if err != nil {
		return nil, ErrBadToken
	}
	aead, err := k.key(ctx)
	if err != nil {
		return nil, err
	}
	plain, err := aead.Open(nil, nil, sealed, []byte(tokenPurpose))
	if err != nil {
		return nil, ErrBadToken
	}
	if s, err = decodeSession(plain); err != nil {
		return nil, err
	}
	k.keep(strings.Clone(token), s)
	return s, nil
}

// keep remembers an open session; when there is no room, all others go.
func (k *sealer) keep(token string, s *Session) {
	k.mu.Lock()
	defer k.mu.Unlock()
	cost := 2*len(token) + tokenEntryBytes
	if k.open == nil || k.bytes+cost > tokenCacheBytes {
		k.open, k.bytes = make(map[string]*Session), 0
	}
	if k.open[token] == nil {
		k.bytes += cost
	}
	k.open[token] = s
}
