package vfs

import "encoding/binary"

// encoder writes the records that decoder reads.
type encoder struct{ b []byte }

func (e *encoder) byte(v byte)                { e.b = append(e.b, v) }
func (e *encoder) uint(v uint64)              { e.b = binary.AppendUvarint(e.b, v) }
func (e *encoder) int(v int64)                { e.b = binary.AppendVarint(e.b, v) }
func (e *encoder) fixed64(v uint64)           { e.b = binary.BigEndian.AppendUint64(e.b, v) }
func (e *encoder) bytes(v []byte)             { e.b = appendBytes(e.b, v) }
func (e *encoder) str(v string)               { e.b = appendStr(e.b, v) }
func (e *encoder) strMap(m map[string]string) { e.b = appendStrMap(e.b, m) }

func (e *encoder) bool(v bool) {
	if v {
		e.byte(1)
	} else {
		e.byte(0)
	}
}
