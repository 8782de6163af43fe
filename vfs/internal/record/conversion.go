package record

import "bytes"

// ConvertedTables in their order: names must lead to IDs before ACLs are read.
var ConvertedTables = []byte{TabUserName, TabBucket, TabInode, TabUpload}

// Conversion is what 'C' "convert" holds: an index into ConvertedTables, the
// greatest uid seen below endFloor, and the next key.
type Conversion struct {
	Table  int
	MaxUID uint32
	Next   []byte
}

func ConversionKey() []byte { return CounterKey("convert") }

func (s *Conversion) Encode() []byte {
	var e Encoder
	e.Uint(uint64(s.Table))
	e.Uint(uint64(s.MaxUID))
	e.Bytes(s.Next)
	return e.B
}

func DecodeConversion(b []byte) (Conversion, error) {
	d := Decoder{B: b, What: "conversion"}
	s := Conversion{Table: int(d.Uint()), MaxUID: uint32(d.Uint()), Next: bytes.Clone(d.Bytes())}
	if s.Table >= len(ConvertedTables) {
		d.Fail()
	}
	return s, d.End()
}
