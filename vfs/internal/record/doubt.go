package record

import (
	"encoding/binary"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
)

// Doubt is a blob that a store to which another one is being moved can have: a record
// named it that is gone from there. The value is empty.
type Doubt struct {
	Blob cluster.BlobID
	Size int64
	CRC  uint64
}

const doubtKeyBytes = 1 + cluster.BlobIDBytes + 8 + 8

func (d Doubt) Key() []byte {
	k := d.Blob.Append(append(make([]byte, 0, doubtKeyBytes), TabDoubt))
	k = binary.BigEndian.AppendUint64(k, uint64(d.Size))
	return binary.BigEndian.AppendUint64(k, d.CRC)
}

func ParseDoubt(k []byte) (d Doubt, err error) {
	if len(k) != doubtKeyBytes || k[0] != TabDoubt {
		return d, fmt.Errorf("%w: key of a doubt %x", fserr.ErrCorrupt, k)
	}
	d.Blob, err = cluster.ParseBlobID(k[1 : 1+cluster.BlobIDBytes])
	rest := k[1+cluster.BlobIDBytes:]
	d.Size, d.CRC = int64(binary.BigEndian.Uint64(rest)), binary.BigEndian.Uint64(rest[8:])
	return d, err
}
