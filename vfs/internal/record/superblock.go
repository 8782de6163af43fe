package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"ogw/cluster"
)

// restoringVersion stands in the superblock of a store that a restore did not
// finish. No program opens it, older ones neither: it is newer than any.
const restoringVersion = math.MaxUint32

// ErrRestoring is the error of a store that is being restored.
var ErrRestoring = errors.New("a restore into this store is not finished: run ogw restore again, which goes on where it was")

// Superblock is the record that makes a store ours.
//
// Value: magic (4 bytes), format version (uvarint), fsid (8), creation (8, Unix ns).
type Superblock struct {
	Version   uint64
	FSID      uint64
	CreatedNS int64
}

const superMagic = "ogw\x00"

func (s *Superblock) Encode() []byte {
	b := binary.AppendUvarint([]byte(superMagic), s.Version)
	b = binary.BigEndian.AppendUint64(b, s.FSID)
	return binary.BigEndian.AppendUint64(b, uint64(s.CreatedNS))
}

func DecodeSuper(b []byte) (Superblock, error) {
	if len(b) < len(superMagic) || string(b[:len(superMagic)]) != superMagic {
		return Superblock{}, fmt.Errorf("%w: the store holds something else", cluster.ErrFormat)
	}
	d := Decoder{B: b[len(superMagic):], What: "superblock"}
	s := Superblock{Version: d.Uint()}
	if s.Version == restoringVersion {
		return s, ErrRestoring
	}
	if d.Err == nil && s.Version > FormatVersion {
		return s, fmt.Errorf("%w: the store has format %d, this program knows up to %d",
			cluster.ErrFormat, s.Version, FormatVersion)
	}
	s.FSID, s.CreatedNS = d.fixed64(), int64(d.fixed64())
	return s, d.End()
}
