package seal

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

const (
	// KeyBytes is the length of a key before it is written in base64.
	KeyBytes = 32
	// idBytes distinguish keys of one store.
	idBytes = 8
	// maxKeys bounds a key file: one, and those that are being rotated out.
	maxKeys = 16

	version = 1
	// The purposes of what is derived from a key.
	purposeSeal = "ogw seal 1: AES-256-GCM"
	purposeID   = "ogw seal 1: key ID"
)

// Errors of Open.
var (
	// ErrUnknownKey: sealed with a key that the Keyring does not hold.
	ErrUnknownKey = errors.New("sealed with a key that is not known here")
	// ErrForged: not what Seal made, or not for this context.
	ErrForged = errors.New("sealed form is damaged or belongs elsewhere")
	// ErrBadKeys: the text holds no keys, or something else too.
	ErrBadKeys = errors.New("bad keys")
)

// Keyring holds the keys of a store. The first seals, all open. It is safe for
// concurrent use; nil holds no key.
type Keyring struct{ keys []key }

type key struct {
	id   [idBytes]byte
	aead cipher.AEAD // adds a random nonce by itself
}

// Parse reads keys, one on a line in base64; lines that begin with # and empty
// ones are skipped. Errors name the line and never its text.
func Parse(text string) (*Keyring, error) {
	k := &Keyring{}
	line := 0
	for s := range strings.SplitSeq(text, "\n") {
		line++
		s = strings.TrimSpace(s)
		if s == "" || s[0] == '#' {
			continue
		}
		raw, err := base64.StdEncoding.DecodeString(s)
		if err != nil || len(raw) != KeyBytes {
			return nil, fmt.Errorf("%w: line %d is not the base64 of %d bytes (openssl rand -base64 %d makes one)", ErrBadKeys, line, KeyBytes, KeyBytes)
		}
		if bytes.Equal(raw, make([]byte, KeyBytes)) {
			return nil, fmt.Errorf("%w: line %d is the key of zeros", ErrBadKeys, line)
		}
		if len(k.keys) == maxKeys {
			return nil, fmt.Errorf("%w: more than %d", ErrBadKeys, maxKeys)
		}
		next, err := newKey(raw)
		if err != nil {
			return nil, err
		}
		k.keys = append(k.keys, next)
	}
	if len(k.keys) == 0 {
		return nil, fmt.Errorf("%w: there is none", ErrBadKeys)
	}
	return k, nil
}

// Throwaway returns a key that nobody else will ever have: what it seals is lost
// with the Keyring.
func Throwaway() (*Keyring, error) {
	raw := make([]byte, KeyBytes)
	rand.Read(raw)
	k, err := newKey(raw)
	return &Keyring{keys: []key{k}}, err
}

func newKey(raw []byte) (key, error) {
	var k key
	id, err := hkdf.Key(sha256.New, raw, nil, purposeID, idBytes)
	if err != nil {
		return k, err
	}
	copy(k.id[:], id)
	derived, err := hkdf.Key(sha256.New, raw, nil, purposeSeal, KeyBytes)
	if err != nil {
		return k, err
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return k, err
	}
	k.aead, err = cipher.NewGCMWithRandomNonce(block)
	return k, err
}

// Seal encrypts secret for a context, with the first key.
func (k *Keyring) Seal(secret []byte, context string) []byte {
	first := &k.keys[0]
	out := append([]byte{version}, first.id[:]...)
	return first.aead.Seal(out, nil, secret, additional(out, context))
}

// Open is the inverse of Seal; ErrUnknownKey, ErrForged.
func (k *Keyring) Open(sealed []byte, context string) ([]byte, error) {
	head := 1 + idBytes
	if len(sealed) < head || sealed[0] != version {
		return nil, ErrForged
	}
	if k != nil {
		for i := range k.keys {
			if string(k.keys[i].id[:]) != string(sealed[1:head]) {
				continue
			}
			secret, err := k.keys[i].aead.Open(nil, nil, sealed[head:], additional(sealed[:head], context))
			if err != nil {
				return nil, ErrForged
			}
			return secret, nil
		}
	}
	return nil, fmt.Errorf("%w: key %s", ErrUnknownKey, KeyID(sealed))
}

// Current reports whether sealed was sealed with the first key.
func (k *Keyring) Current(sealed []byte) bool {
	return len(sealed) > idBytes && sealed[0] == version && string(sealed[1:1+idBytes]) == string(k.keys[0].id[:])
}

// IDs returns the IDs of the keys, which say nothing about them, in their
// order.
func (k *Keyring) IDs() []string {
	if k == nil {
		return nil
	}
	var out []string
	for i := range k.keys {
		out = append(out, hex.EncodeToString(k.keys[i].id[:]))
	}
	return out
}

// KeyID returns the ID of the key that sealed was sealed with, "" if it was
// not.
func KeyID(sealed []byte) string {
	if len(sealed) <= idBytes {
		return ""
	}
	return hex.EncodeToString(sealed[1 : 1+idBytes])
}

// additional is what the tag covers besides: the head and the context.
func additional(head []byte, context string) []byte {
	return append(bytes.Clone(head), context...)
}
