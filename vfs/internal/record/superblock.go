package record

import (
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

// movedVersion stands in that of one that was moved to another one (Moved).
const movedVersion = movingVersion - 1

var (
	// ErrRestoring is the error of a store that is being restored.
	ErrRestoring = errors.New("a restore into this store is not finished: run ogw restore again, which goes on where it was")
	// ErrMoving is the error of one to which another is being moved.
	ErrMoving = errors.New("another store is being moved to this one, and not all of it is here: " +
		"stop the gateways of that one and run ogw migrate again, which goes on where it was")
	// ErrMoved is the error of one that was moved to another one.
	ErrMoved = errors.New("the store was moved")
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
	e := Encoder{B: []byte(superMagic)}
	s.encode(&e)
	return e.B
}

func (s *Superblock) encode(e *Encoder) {
	e.Uint(s.Version)
	e.fixed64(s.FSID)
	e.fixed64(uint64(s.CreatedNS))
}

// decode decodes what is behind the version.
func (s *Superblock) decode(d *Decoder) { s.FSID, s.CreatedNS = d.fixed64(), int64(d.fixed64()) }

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
	case movedVersion:
		return s, ErrMoved
	}
	if d.Err == nil && s.Version > FormatVersion {
		return s, fmt.Errorf("%w: the store has format %d, this program knows up to %d",
			cluster.ErrFormat, s.Version, FormatVersion)
	}
	s.decode(&d)
	return s, d.End()
}
