package listing

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"

	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/record"
)

// An upload marker holds where a page of uploads ended, to who may not know the
// key of the upload that stands there. It is sealed with a secret of the store,
// and of one length whatever the key:
//
//	"~", base64url of: nonce (12), AES-256-GCM of ID (8), length of the key (2),
//	key, zeros to MaxKeyBytes
//
// The bucket's name is authenticated with it.
const (
	// MarkerPrefix begins a marker, and the ID of no upload. It means
	// something without a key beside it.
	MarkerPrefix = "~"
	MarkerBytes  = 8 + 2 + keypath.MaxKeyBytes
)

// Secret gives the secret of the store that seals markers.
type Secret func() ([]byte, error)

// SealMarker returns the marker of an upload of a bucket.
func SealMarker(at Position, bucket string, secret Secret) (string, error) {
	aead, err := markerSeal(secret)
	if err != nil {
		return "", err
	}
	b := make([]byte, MarkerBytes)
	binary.BigEndian.PutUint64(b, uint64(at.ID))
	binary.BigEndian.PutUint16(b[8:], uint16(copy(b[10:], at.Key)))
	return MarkerPrefix + base64.RawURLEncoding.EncodeToString(aead.Seal(nil, nil, b, []byte(bucket))), nil
}

// OpenMarker is the inverse of SealMarker. ok reports whether marker is one.
func OpenMarker(marker, bucket string, secret Secret) (at Position, ok bool, err error) {
	text, ok := strings.CutPrefix(marker, MarkerPrefix)
	if !ok {
		return at, false, nil
	}
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		var aead cipher.AEAD
		if aead, err = markerSeal(secret); err != nil {
			return at, true, err
		}
		sealed, err = aead.Open(nil, nil, sealed, []byte(bucket))
	}
	if err != nil || len(sealed) != MarkerBytes {
		return at, true, fmt.Errorf("upload marker: %w", fserr.ErrInvalid)
	}
	n := min(int(binary.BigEndian.Uint16(sealed[8:])), keypath.MaxKeyBytes)
	return Position{string(sealed[10 : 10+n]), record.ContentID(binary.BigEndian.Uint64(sealed))}, true, nil
}

func markerSeal(secret Secret) (cipher.AEAD, error) {
	key, err := secret()
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}
