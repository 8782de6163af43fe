package record

import (
	"bytes"
	"encoding/binary"

	"ogw/cluster"
)

// The engine's own keys, in the same Pebble as the metadata. 0xFF keeps them
// apart from the keys of the layers above.
//
//	FF 'b' blob ID (16)  → place of the blob
//	FF 'd' segment (8)   → nothing: damage was found in the segment
//	FF 'e'               → nothing: written by Erase
//	FF 'm'               → state (8), see mark
//	FF 's'               → store ID (16), as in FORMAT
//	FF 't'               → epoch (8), version (8) of the newest commit, see tail
//
// MarkKey holds the state of the mark.
//
// VersionKey holds epoch and version of a commit that Pebble has, for a
// start to know which of the tail's are missing. A process's first commit sets
// it, so that what others left in the file is old, and every commit that the
// tail gets does: where Pebble has version n as the newest that set it, and the
// tail has n+1, Pebble's newest commit is n, since else n+1 had set it.
var (
	BlobPrefix  = []byte{0xff, 'b'}
	DoubtPrefix = []byte{0xff, 'd'}
	MarkKey     = []byte{0xff, 'm'}
	StoreKey    = []byte{0xff, 's'}
	VersionKey  = []byte{0xff, 't'}
	EraseKey    = []byte{0xff, 'e'} // written by Erase, so that there is something to flush
)

// BlobKey is that of the place of a blob.
func BlobKey(id cluster.BlobID) []byte {
	return id.Append(append(make([]byte, 0, len(BlobPrefix)+cluster.BlobIDBytes), BlobPrefix...))
}

// DoubtKey is that of a segment in which damage was found.
func DoubtKey(segment uint64) []byte {
	return binary.BigEndian.AppendUint64(bytes.Clone(DoubtPrefix), segment)
}
