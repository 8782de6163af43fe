// Package seal encrypts the secrets that a store keeps, with keys that are not
// kept in it.
//
//	key file ── Load ──→ Keyring ──┬─ Seal: with the first key
//	             (file.go)         └─ Open: with the key that the sealed form names
//
// A key is 32 random bytes, written in base64, one on a line. Nothing is sealed
// with it directly: HKDF-SHA256 derives from it a key for AES-256-GCM and the
// ID by which a sealed form names it. Nonces are random (96 bits); a store seals
// a few thousand secrets, far from the 2^32 that one key is good for.
//
// What is sealed is bound to its place: Open needs the context that Seal got, so
// that who can write to the store cannot put one user's sealed secret where
// another's belongs.
//
// Sealed form: version byte 1, ID of the key (8 bytes), nonce (12), ciphertext
// and tag (16).
package seal
