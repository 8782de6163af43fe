package rados

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

	"ogw/cluster"
	"ogw/cluster/internal/frame"

	"github.com/minio/crc64nvme"
)

const (
	// partBlocks is how many blocks an object holds: 4 MiB, which Ceph's own
	// clients take. It spreads a blob over OSDs, and recovers in little time.
	partBlocks = 4 << 20 / cluster.BlockBytes
	// partBytes is the length of all parts but the last.
	partBytes = partBlocks * frame.Bytes
	// maxParts is how many objects a blob is at the most, its head included.
	maxParts = cluster.MaxBlobBytes / (partBlocks * cluster.BlockBytes)

	headMagic = "ogwblob1"
	// headBytes is the length of a head before its frames: magic, ID, token, length of the
	// blob, time, and the CRC64NVME of these.
	headBytes = 8 + cluster.BlobIDBytes + 8 + 8 + 8 + 8
)

// head is what the first object of a blob begins with. A blob exists when it does.
type head struct {
	id       cluster.BlobID
	token    token // of the writer, in the names of the other parts
	size     int64
	modified time.Time
}

// token is a number that no other writer has.
type token uint64

func (t token) String() string { return fmt.Sprintf("%016x", uint64(t)) }

func parseToken(text string) (token, error) {
	n, err := strconv.ParseUint(text, 16, 64)
	return token(n), err
}

func headName(id cluster.BlobID) string { return "blob/" + id.String() }

// partName names part n of a blob, from 1 on; 0 is in the head.
func partName(id cluster.BlobID, of token, n int64) string {
	return fmt.Sprintf("part/%v.%v.%d", id, of, n)
}

// parts returns how many objects the blob is.
func (h head) parts() int64 { return frame.LastBlock(h.size)/partBlocks + 1 }

// name returns that of part n.
func (h head) name(n int64) string {
	if n == 0 {
		return headName(h.id)
	}
	return partName(h.id, h.token, n)
}

// put encodes h into the first headBytes of b.
func (h head) put(b []byte) {
	b = append(b[:0], headMagic...)
	b = h.id.Append(b)
	b = binary.BigEndian.AppendUint64(b, uint64(h.token))
	b = binary.BigEndian.AppendUint64(b, uint64(h.size))
	b = binary.BigEndian.AppendUint64(b, uint64(h.modified.UnixNano()))
	binary.BigEndian.AppendUint64(b, crc64nvme.Checksum(b))
}

// parseHead decodes what put encoded for a blob, or returns ErrCorrupt.
func parseHead(b []byte, id cluster.BlobID) (head, error) {
	if len(b) != headBytes || !bytes.HasPrefix(b, []byte(headMagic)) ||
		binary.BigEndian.Uint64(b[headBytes-8:]) != crc64nvme.Checksum(b[:headBytes-8]) {
		return head{}, fmt.Errorf("%w: blob %v, head", cluster.ErrCorrupt, id)
	}
	found, err := cluster.ParseBlobID(b[8 : 8+cluster.BlobIDBytes])
	rest := b[8+cluster.BlobIDBytes:]
	h := head{
		id: found, token: token(binary.BigEndian.Uint64(rest)), size: int64(binary.BigEndian.Uint64(rest[8:])),
		modified: time.Unix(0, int64(binary.BigEndian.Uint64(rest[16:]))),
	}
	if err != nil || found != id || h.size < 0 || h.size > cluster.MaxBlobBytes {
		return head{}, fmt.Errorf("%w: blob %v has the head of %v, of %d bytes", cluster.ErrCorrupt, id, found, h.size)
	}
	return h, nil
}

// readHead returns the head of a blob.
func (b *Blobs) readHead(ctx context.Context, id cluster.BlobID) (h head, err error) {
	err = b.pool.Read(ctx, headName(id), func(parts [][]byte) error {
		h, err = parseHead(parts[0], id)
		return err
	}, Span{0, headBytes})
	if errors.Is(err, cluster.ErrNotFound) {
		b.heads.drop(id)
	}
	return h, err
}
