package record

import (
	"bytes"
	"encoding/binary"
)

// Restoring is the superblock of a store that is being restored: what and
// how, and the last key that is there.
type Restoring struct {
	Snapshot string
	// Moves is set where another store is being moved here, which Snapshot names:
	// nothing is known of keys.
	Moves   bool
	Last    []byte
	Copy    bool
	Recodes bool   // the secrets are opened
	Key     string // ID of the key that they are sealed with then, "" in clear
}

func (m *Restoring) Encode() []byte {
	version := uint64(restoringVersion)
	if m.Moves {
		version = movingVersion
	}
	e := Encoder{B: binary.AppendUvarint([]byte(superMagic), version)}
	e.Str(m.Snapshot)
	e.Bytes(m.Last)
	e.Bool(m.Copy)
	e.Bool(m.Recodes)
	e.Str(m.Key)
	return e.B
}

func DecodeRestoring(b []byte) (m Restoring, ok bool) {
	if len(b) < len(superMagic) || string(b[:len(superMagic)]) != superMagic {
		return m, false
	}
	d := Decoder{B: b[len(superMagic):], What: "superblock"}
	version := d.Uint()
	if version != restoringVersion && version != movingVersion {
		return m, false
	}
	m.Moves = version == movingVersion
	m.Snapshot = d.Str()
	m.Last = bytes.Clone(d.Bytes())
	m.Copy = d.Byte() != 0
	m.Recodes = d.Byte() != 0
	m.Key = d.Str()
	return m, d.End() == nil
}
