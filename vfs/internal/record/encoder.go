package record

import "encoding/binary"

// Encoder writes the records that decoder reads.
type Encoder struct{ B []byte }

func (e *Encoder) Byte(v byte)                { e.B = append(e.B, v) }
func (e *Encoder) Uint(v uint64)              { e.B = binary.AppendUvarint(e.B, v) }
func (e *Encoder) Int(v int64)                { e.B = binary.AppendVarint(e.B, v) }
func (e *Encoder) fixed64(v uint64)           { e.B = binary.BigEndian.AppendUint64(e.B, v) }
func (e *Encoder) Bytes(v []byte)             { e.B = appendBytes(e.B, v) }
func (e *Encoder) Str(v string)               { e.B = appendStr(e.B, v) }
func (e *Encoder) strMap(m map[string]string) { e.B = appendStrMap(e.B, m) }

func (e *Encoder) Bool(v bool) {
	if v {
		e.Byte(1)
	} else {
		e.Byte(0)
	}
}

func (e *Encoder) Field(number uint64, value []byte) {
	e.Uint(number)
	e.Bytes(value)
}
