package vfs

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
)

// An upload marker tells where a page of uploads ended, to who may not know the
// key of the upload that stands there. It is sealed with a secret of the store,
// and of one length whatever the key:
//
//	"~", base64url of: nonce (12), AES-256-GCM of ID (8), length of the key (2),
//	key, zeros to MaxKeyBytes
//
// The bucket's name is authenticated with it.
const (
	// UploadMarkerPrefix begins a marker, and the ID of no upload. It means
	// something without a key beside it.
	UploadMarkerPrefix = "~"
	uploadMarkerSecret = "uploads/markers"
	uploadMarkerBytes  = 8 + 2 + MaxKeyBytes
)

// sealMarker returns the marker of an upload.
func (fs *FS) sealMarker(ctx context.Context, bucket, key string, id ContentID) (string, error) {
	aead, err := fs.markerSeal(ctx)
	if err != nil {
		return "", err
	}
	b := make([]byte, uploadMarkerBytes)
	binary.BigEndian.PutUint64(b, uint64(id))
	binary.BigEndian.PutUint16(b[8:], uint16(copy(b[10:], key)))
	return UploadMarkerPrefix + base64.RawURLEncoding.EncodeToString(aead.Seal(nil, nil, b, []byte(bucket))), nil
}

// openMarker is the inverse of sealMarker. ok tells that marker is one.
func (fs *FS) openMarker(ctx context.Context, bucket, marker string) (key string, id ContentID, ok bool, err error) {
	text, ok := strings.CutPrefix(marker, UploadMarkerPrefix)
	if !ok {
		return "", 0, false, nil
	}
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		var aead cipher.AEAD
		if aead, err = fs.markerSeal(ctx); err != nil {
			return "", 0, true, err
		}
		sealed, err = aead.Open(nil, nil, sealed, []byte(bucket))
	}
	if err != nil || len(sealed) != uploadMarkerBytes {
		return "", 0, true, fmt.Errorf("upload marker: %w", ErrInvalid)
	}
	n := min(int(binary.BigEndian.Uint16(sealed[8:])), MaxKeyBytes)
	return string(sealed[10 : 10+n]), ContentID(binary.BigEndian.Uint64(sealed)), true, nil
}

func (fs *FS) markerSeal(ctx context.Context) (cipher.AEAD, error) {
	secret, err := fs.StoreSecret(ctx, uploadMarkerSecret)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}
