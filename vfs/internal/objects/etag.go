package objects

import (
	"encoding/hex"
	"fmt"
	"strconv"

	"ogw/vfs/internal/record"
)

// emptyMD5 is the MD5 of no bytes.
var emptyMD5 = [16]byte{0xd4, 0x1d, 0x8c, 0xd9, 0x8f, 0x00, 0xb2, 0x04, 0xe9, 0x80, 0x09, 0x98, 0xec, 0xf8, 0x42, 0x7e}

// ETagOf returns the ETag of the content of n. That of a directory nobody gave
// a content is the MD5 of none: POSIX cannot change it.
func ETagOf(n *record.Inode) ETag {
	sum := n.Object.Sum
	switch {
	case len(sum) > 0 && n.Object.NParts > 0:
		return ETagOfParts(sum, n.Object.NParts)
	case len(sum) > 0:
		var text [2 * len(emptyMD5)]byte
		return ETag(hex.AppendEncode(text[:0], sum))
	case n.IsDir() && n.Size == 0:
		return ETag(hex.EncodeToString(emptyMD5[:]))
	default:
		return OpaqueETag(n.Ino, n.Version)
	}
}

// ETagOfParts is the ETag of an object of so many parts; sum is the MD5 of their MD5s.
func ETagOfParts(sum []byte, parts int) ETag {
	b := make([]byte, 2*len(sum), 2*len(sum)+6)
	hex.Encode(b, sum)
	return ETag(strconv.AppendInt(append(b, '-'), int64(parts), 10))
}

// OpaqueETag is the ETag of what has no stored sum. Its dash shows clients
// that it is no MD5, and its zero that it is no multipart ETag either. Inode
// numbers are never used twice and versions only grow, so it is unique.
func OpaqueETag(ino record.Ino, version uint64) ETag {
	return ETag(fmt.Sprintf("%016x%016x-0", uint64(ino), version))
}

// partETag is the ETag of a part.
func partETag(sum []byte) ETag { return ETag(hex.EncodeToString(sum)) }
