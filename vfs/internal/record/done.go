package record

import "encoding/binary"

// Done records that a process did what a request asked for (key 'd').
//
// Value: version byte, ID of the request (16 bytes), process (8, random), time (8,
// Unix nanoseconds).
type Done struct {
	ID      [16]byte
	Process uint64
	TimeNS  int64
}

const (
	doneVersion = 1
	doneBytes   = 1 + 16 + 8 + 8
)

func (r *Done) Encode() []byte {
	b := append(make([]byte, 0, doneBytes), doneVersion)
	b = append(b, r.ID[:]...)
	b = binary.BigEndian.AppendUint64(b, r.Process)
	return binary.BigEndian.AppendUint64(b, uint64(r.TimeNS))
}

// DecodeDone returns false for what is no record, or one of a later version: the
// request was then not done, as far as this program knows.
func DecodeDone(b []byte) (r Done, ok bool) {
	if len(b) != doneBytes || b[0] != doneVersion {
		return r, false
	}
	return Done{[16]byte(b[1:17]), binary.BigEndian.Uint64(b[17:]), int64(binary.BigEndian.Uint64(b[25:]))}, true
}
