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

// flagStored: it is said which writes are stored.
const flagStored inodeFlags = 1 << 21

// NoteStored adds w. What it says as well, earlier ones need not.
func (n *Inode) NoteStored(w StoredWrites) {
	list := slices.DeleteFunc(slices.Clone(n.Stored), func(s StoredWrites) bool {
		return s.Keeper == w.Keeper && s.Seq <= w.Seq && s.UpTo <= w.UpTo
	})
	n.Stored = append(list[max(0, len(list)-maxStored+1):], w)
}

// StoredBefore returns the offset before which the bytes of a keeper's write with the number
// seq are stored, 0 if none are known to be.
func (n *Inode) StoredBefore(keeper, seq uint64) (off int64) {
	for _, s := range n.Stored {
		if s.Keeper == keeper && s.Seq >= seq {
			off = max(off, s.UpTo)
		}
	}
	return off
}

func appendStored(b []byte, list []StoredWrites) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = binary.BigEndian.AppendUint64(b, s.Keeper)
		b = binary.AppendUvarint(b, s.Seq)
		if s.UpTo == StoredWhole {
			s.UpTo = 0
		}
		b = binary.AppendUvarint(b, uint64(s.UpTo))
	}
	return b
}

func (d *Decoder) stored() (list []StoredWrites) {
	for n := d.Count(); n > 0 && d.Err == nil; n-- {
		s := StoredWrites{d.fixed64(), d.Uint(), int64(d.Uint())}
		if s.UpTo == 0 {
			s.UpTo = StoredWhole
		}
		if s.UpTo < 0 {
			d.Fail()
		}
		list = append(list, s)
	}
	return list
}
