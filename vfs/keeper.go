package vfs

import (
	"cmp"
	"context"
	"slices"
)

// Keeper keeps what was written through a File where it outlives the process,
// until it is in the store. Keep and Stored are called under the lock of a file:
// they must not wait, nor call the FS.
type Keeper interface {
	// Reserve comes before a write of n bytes, which Keep is notified of, with no
	// lock held. It may wait for room, and store files for that. The caller
	// calls done behind the write.
	Reserve(ctx context.Context, n int) (done func(), err error)
	// Keep is notified of a write that succeeded, before anybody else learns of
	// it, in the order of the writes to a file.
	Keep(w *KeptWrite)
	// Stored notes that the writes to ino up to the one with the number seq need
	// not be kept: their bytes are stored, or the writers got or will get an error
	// that they are lost. It lets go of them in their order.
	Stored(ino Ino, seq uint64)
	// Lost notes that what was written to ino and not stored is dropped, since its
	// content was replaced or is gone. Sync reports it to each File that wrote; should
	// the process end before, the next one must.
	Lost(ino Ino)
	// Oldest returns the number of the first write to ino that is kept.
	Oldest(ino Ino) (seq uint64, ok bool)
	// ID returns a random number that the next process has for it, too.
	ID() uint64
}

// KeptWrite is one write. Its bytes may change after the call.
type KeptWrite struct {
	Ino      Ino
	Epoch    uint64 // of the content written to; another content is not to be written
	Off      int64
	Data     []byte
	KillPriv bool // it takes setuid and setgid off the file
	// Seq grows with the writes to a file, whichever Keeper has them, also over
	// the end of a process whose writes were made again (File.Rewrite).
	Seq uint64
	Tag uint64 // of the context (WithWriteTag)
}

// keptMark is the last write of a file that a Keeper has.
type keptMark struct {
	by  Keeper
	seq uint64
}

// ReleaseKept notifies Keepers that the writes to ino up to a number each need not be
// kept. Those of several go in the order in which they were made: code that makes
// again what is left, should this be interrupted, has the bytes that were written
// last.
func ReleaseKept(ino Ino, upTo map[Keeper]uint64) {
	for {
		var list []keptMark // the oldest that each has
		for k, last := range upTo {
			if seq, ok := k.Oldest(ino); ok && seq <= last {
				list = append(list, keptMark{k, seq})
			}
		}
		if len(list) == 0 {
			return
		}
		slices.SortFunc(list, func(a, b keptMark) int { return cmp.Compare(a.seq, b.seq) })
		last := upTo[list[0].by]
		if len(list) > 1 {
			last = min(last, list[1].seq-1)
		}
		list[0].by.Stored(ino, last)
	}
}

// KeptBefore has writes be numbered above what a Keeper had before. It comes before the
// first that it keeps.
func (fs *FS) KeptBefore(seq uint64) {
	for have := fs.kept.Load(); have < seq && !fs.kept.CompareAndSwap(have, seq); {
		have = fs.kept.Load()
	}
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
