package record

import "encoding/binary"

// Content is what key 's' holds.
//
// Value: kind (1 byte), then of a staging record the time it was made (8,
// Unix nanoseconds), of a shared one whether an inode holds it (1), and, if that is
// known, Version (uvarint).
type Content struct {
	Staging bool
	MadeNS  int64
	Held    bool
	// Version, of one that no inode holds any more, is that of the inode which held it
	// last, when it did. It changes in place no more since: who opened that version
	// can read on. 0 where no other gateways read.
	Version uint64
}

const (
	recordStaging byte = 1
	recordShared  byte = 2
)

func (r Content) Encode() []byte {
	if r.Staging {
		return binary.BigEndian.AppendUint64([]byte{recordStaging}, uint64(r.MadeNS))
	}
	if r.Held {
		return []byte{recordShared, 1}
	}
	b := []byte{recordShared, 0}
	if r.Version > 0 {
		b = binary.AppendUvarint(b, r.Version)
	}
	return b
}

func DecodeContent(b []byte) (r Content, err error) {
	d := Decoder{B: b, What: "content"}
	switch d.Byte() {
	case recordStaging:
		r.Staging, r.MadeNS = true, int64(d.fixed64())
	case recordShared:
		v := d.Byte()
		if v > 1 {
			d.Fail()
		}
		if r.Held = v == 1; !r.Held && len(d.B) > 0 {
			r.Version = d.Uint()
		}
	default:
		d.Fail()
	}
	return r, d.End()
}
