package users

import (
	"crypto/rand"
	"encoding/base64"
	"time"
)

// NewKey makes an access key at random, in the shape that S3 tools expect:
// 20 characters with 95 random bits and 40 with 240.
func NewKey(now time.Time) AccessKey {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	id := []byte("OGW0")
	var random [16]byte
	rand.Read(random[:])
	for _, b := range random {
		id = append(id, letters[b&31])
	}
	var secret [30]byte
	rand.Read(secret[:])
	return AccessKey{ID: string(id), Secret: base64.URLEncoding.EncodeToString(secret[:]), Created: now.UnixNano()}
}
