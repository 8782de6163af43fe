package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/minio/crc64nvme"

	"ogw/cluster"
)

// The first byte of an entry's key.
const (
	keyPair = 'm'
	keyBlob = 'n'
)

// smallValue is the longest value that stands in its entry.
const smallValue = 256

// The kinds of entries.
const (
	entryValue   = 1
	entryPiece   = 2
	entryDeleted = 3
)

// sumBytes is the length of the sum of a piece: the first bytes of SHA-256 of a
// value, or the CRC of a blob and zeros.
const sumBytes = 16

type sum [sumBytes]byte

func valueSum(b []byte) (s sum) {
	full := sha256.Sum256(b)
	copy(s[:], full[:])
	return s
}

func blobSum(crc uint64) (s sum) {
	binary.BigEndian.PutUint64(s[:], crc)
	return s
}

// piece is where bytes are.
type piece struct {
	session uint64
	pack    uint32
	off     uint32 // names it within the pack, see packIndex
	len     uint32
	sum     sum
}

// same reports whether two pieces hold the same bytes.
func (p *piece) same(sum sum, length int) bool { return p.sum == sum && int(p.len) == length }

// verify compares bytes with the sum.
func (p *piece) verify(key, b []byte) error {
	got := valueSum(b)
	if key[0] == keyBlob {
		got = blobSum(crc64nvme.Checksum(b))
	}
	if len(b) != int(p.len) || got != p.sum {
		return fmt.Errorf("%w: the bytes of %s in %s do not have their checksum", ErrDamaged, keyText(key), packName(p.session, p.pack))
	}
	return nil
}

func keyText(key []byte) string {
	if key[0] == keyBlob && len(key) == 1+cluster.BlobIDBytes {
		return fmt.Sprintf("blob %x", key[1:])
	}
	return fmt.Sprintf("record %q", key[1:])
}

func blobKey(id cluster.BlobID) []byte { return id.Append([]byte{keyBlob}) }

// entry is one of a catalog.
type entry struct {
	key   []byte
	kind  byte
	value []byte // entryValue
	piece piece  // entryPiece
}

func (e *entry) append(b []byte) []byte {
	b = append(b, e.kind)
	b = binary.AppendUvarint(b, uint64(len(e.key)))
	b = append(b, e.key...)
	switch e.kind {
	case entryValue:
		b = binary.AppendUvarint(b, uint64(len(e.value)))
		b = append(b, e.value...)
	case entryPiece:
		b = binary.BigEndian.AppendUint64(b, e.piece.session)
		b = binary.AppendUvarint(b, uint64(e.piece.pack))
		b = binary.AppendUvarint(b, uint64(e.piece.off))
		b = binary.AppendUvarint(b, uint64(e.piece.len))
		b = append(b, e.piece.sum[:]...)
	}
	return b
}

var errShort = errors.New("it ends too early")

// cutter takes a stored form apart.
type cutter struct {
	b   []byte
	err error
}

func (c *cutter) take(n uint64) []byte {
	if n > uint64(len(c.b)) {
		c.b, c.err = nil, errShort
		return nil
	}
	out := c.b[:n:n]
	c.b = c.b[n:]
	return out
}

func (c *cutter) uint() uint64 {
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		c.b, c.err = nil, errShort
		return 0
	}
	c.b = c.b[n:]
	return v
}

func (c *cutter) uint32() uint32 {
	v := c.uint()
	if v > 1<<32-1 {
		c.err = errors.New("a number is too large")
	}
	return uint32(v)
}

func (c *cutter) uint64() uint64 {
	if b := c.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (c *cutter) entry() (e entry) {
	if b := c.take(1); b != nil {
		e.kind = b[0]
	}
	e.key = c.take(c.uint())
	switch e.kind {
	case entryValue:
		e.value = c.take(c.uint())
	case entryPiece:
		e.piece.session = c.uint64()
		e.piece.pack, e.piece.off, e.piece.len = c.uint32(), c.uint32(), c.uint32()
		copy(e.piece.sum[:], c.take(sumBytes))
	case entryDeleted:
	default:
		c.err = fmt.Errorf("an entry of kind %d", e.kind)
	}
	if c.err == nil && (len(e.key) < 2 || e.key[0] != keyPair && e.key[0] != keyBlob) {
		c.err = fmt.Errorf("an entry with the key %q", e.key)
	}
	return e
}

func before(a, b []byte) bool { return bytes.Compare(a, b) < 0 }
