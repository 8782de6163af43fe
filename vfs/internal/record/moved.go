package record

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"ogw/cluster"
)

// Moved is the superblock of a store that was moved to another one. Both have the same
// identity, and what is written to one is not in the other.
//
// Value: magic, movedVersion, then of the superblock before: format version, fsid, creation;
// To (length, bytes), time (8, Unix ns).
type Moved struct {
	Super  Superblock // before
	To     string     // the place of the other one
	TimeNS int64
}

func (m *Moved) Encode() []byte {
	e := Encoder{B: binary.AppendUvarint([]byte(superMagic), movedVersion)}
	m.Super.encode(&e)
	e.Str(m.To)
	e.fixed64(uint64(m.TimeNS))
	return e.B
}

// DecodeMoved also reports whether b is the superblock of a store that was moved.
func DecodeMoved(b []byte) (m Moved, ok bool, err error) {
	if !bytes.HasPrefix(b, []byte(superMagic)) {
		return m, false, nil
	}
	d := Decoder{B: b[len(superMagic):], What: "superblock"}
	if d.Uint() != movedVersion {
		return m, false, nil
	}
	m.Super.Version = d.Uint()
	m.Super.decode(&d)
	m.To, m.TimeNS = d.Str(), int64(d.fixed64())
	if err = d.End(); err == nil && m.Super.Version > FormatVersion {
		err = fmt.Errorf("%w: the store was moved to %s, and has format %d; this program knows up to %d",
			cluster.ErrFormat, m.To, m.Super.Version, FormatVersion)
	}
	return m, true, err
}

// Refusal returns the error of who opens the store.
func (m *Moved) Refusal() error {
	return fmt.Errorf("%w to %s on %s; serve that one, or give it up with ogw migrate --undo, which makes this one a store again as it was then",
		ErrMoved, m.To, time.Unix(0, m.TimeNS).Local().Format(time.DateTime))
}
