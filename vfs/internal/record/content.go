package record

import "encoding/binary"

// Content is what key 's' holds.
//
// Value: kind (1 byte), then of a staging record the time it was made (8,
// Unix nanoseconds), of a shared one whether an inode holds it (1).
type Content struct {
	Staging bool
	MadeNS  int64
	Held    bool
}

const (
	recordStaging byte = 1
	recordShared  byte = 2
)

func (r Content) Encode() []byte {
	if r.Staging {
		return binary.BigEndian.AppendUint64([]byte{recordStaging}, uint64(r.MadeNS))
	}
	held := byte(0)
	if r.Held {
		held = 1
	}
	return []byte{recordShared, held}
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
		r.Held = v == 1
	default:
		d.Fail()
	}
	return r, d.End()
}
