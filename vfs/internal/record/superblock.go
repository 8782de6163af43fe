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

// movingVersion stands there while another store is being moved to this one.
const movingVersion = restoringVersion - 1

var (
	// ErrRestoring is the error of a store that is being restored.
	ErrRestoring = errors.New("a restore into this store is not finished: run ogw restore again, which goes on where it was")
	// ErrMoving is the error of one to which another is being moved.
	ErrMoving = errors.New("another store is being moved to this one, and not all of it is here: " +
		"stop the gateways of that one and run ogw migrate again, which goes on where it was")
)

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
	switch s.Version {
	case restoringVersion:
		return s, ErrRestoring
	case movingVersion:
		return s, ErrMoving
	}
	if d.Err == nil && s.Version > FormatVersion {
		return s, fmt.Errorf("%w: the store has format %d, this program knows up to %d",
			cluster.ErrFormat, s.Version, FormatVersion)
	}
	s.FSID, s.CreatedNS = d.fixed64(), int64(d.fixed64())
	return s, d.End()
}
