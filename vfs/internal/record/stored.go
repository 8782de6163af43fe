package record

import (
	"encoding/binary"
	"math"
	"slices"
)

// StoredWrites says of the writes to a file that one keeper has, and that a process after this
// one makes again, what is stored: the bytes before UpTo of those with numbers up to Seq.
type StoredWrites struct {
	Keeper uint64 // random
	Seq    uint64
	UpTo   int64 // StoredWhole: all bytes
}

// StoredWhole is an offset behind all bytes.
const StoredWhole = math.MaxInt64

// maxStored bounds what an inode says; the oldest goes.
const maxStored = 8

// Stored is what an inode says of all keepers, the oldest first.
type Stored []StoredWrites

// Note adds w. What it says as well, earlier ones need not.
func (l *Stored) Note(w StoredWrites) {
	list := slices.DeleteFunc(slices.Clone(*l), func(s StoredWrites) bool {
		return s.Keeper == w.Keeper && s.Seq <= w.Seq && s.UpTo <= w.UpTo
	})
	*l = append(list[max(0, len(list)-maxStored+1):], w)
}

// Before returns the offset before which the bytes of a keeper's write with the number
// seq are stored, 0 if none are known to be.
func (l Stored) Before(keeper, seq uint64) (off int64) {
	for _, s := range l {
		if s.Keeper == keeper && s.Seq >= seq {
			off = max(off, s.UpTo)
		}
	}
	return off
}

func (l Stored) appendTo(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(l)))
	for _, s := range l {
		b = binary.BigEndian.AppendUint64(b, s.Keeper)
		b = binary.AppendUvarint(b, s.Seq)
		if s.UpTo == StoredWhole {
			s.UpTo = 0
		}
		b = binary.AppendUvarint(b, uint64(s.UpTo))
	}
	return b
}
