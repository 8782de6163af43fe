package vfs

import "context"

// Keeper keeps what was written through a File where it outlives the process,
// until it is in the store. Keep and Stored are called under the lock of a file:
// they must not wait, nor call the FS.
type Keeper interface {
	// Reserve comes before a write of n bytes, which Keep is told of, with no
	// lock held. It may wait for room, and store files for that. The caller
	// calls done behind the write.
	Reserve(ctx context.Context, n int) (done func(), err error)
	// Keep is told of a write that succeeded, before anybody else learns of
	// it, in the order of the writes to a file. Later ones have greater marks.
	Keep(w *KeptWrite) (mark uint64)
	// Stored tells that the writes to ino up to mark need not be kept: their
	// bytes are stored, or the writers were or will be told that they are lost.
	Stored(ino Ino, mark uint64)
}

// KeptWrite is one write. Its bytes may change after the call.
type KeptWrite struct {
	Ino      Ino
	Epoch    uint64 // of the content written to; another content is not to be written
	Off      int64
	Data     []byte
	KillPriv bool // it takes setuid and setgid off the file
	// Seq grows with the writes to a file by this process, whichever Keeper
	// has them.
	Seq uint64
	Tag uint64 // of the context (WithWriteTag)
}

// keptMark is the last write of a file that a Keeper has.
type keptMark struct {
	by   Keeper
	mark uint64
}

type writeTagKey struct{}

// WithWriteTag returns a context whose writes have a tag.
func WithWriteTag(ctx context.Context, tag uint64) context.Context {
	return context.WithValue(ctx, writeTagKey{}, tag)
}

// writeTag returns the tag of a context's writes.
func writeTag(ctx context.Context) uint64 {
	tag, _ := ctx.Value(writeTagKey{}).(uint64)
	return tag
}
