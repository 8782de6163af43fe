// Package bodyhash computes the MD5 of bodies, and another hash, beside their
// reading and writing.
//
//	reader ─ Buffer ─► fill ─ Write ─► Hasher's goroutine ─► MD5Pool ─► md5lanes
//	   ▲                                    │
//	   └──────────── the buffer, free ──────┘
//
// A buffer belongs to the reader from Buffer to Write; between Write and the next
// Buffer both only read it. Buffers bounds what all bodies hold together: who
// finds none free goes on with two small ones, so that slow clients hold up
// nobody. MD5Pool has no goroutine: who comes first hashes for those that come
// meanwhile. Buffers.mu and MD5Pool.mu are leaves.
package bodyhash
