package record

import (
	"encoding/binary"
	"fmt"

	"ogw/vfs/internal/fserr"
)

// Decoder reads the varint-coded records of this package. The first error
// sticks; every length is checked against what is left before it is used.
type Decoder struct {
	B    []byte
	What string
	Err  error
}

func (d *Decoder) Fail() {
	if d.Err == nil {
		d.Err = fmt.Errorf("%w: %s record", fserr.ErrCorrupt, d.What)
	}
	d.B = nil
}

func (d *Decoder) Byte() byte {
	if len(d.B) == 0 {
		d.Fail()
		return 0
	}
	v := d.B[0]
	d.B = d.B[1:]
	return v
}

func (d *Decoder) Uint() uint64 {
	v, n := binary.Uvarint(d.B)
	if n <= 0 {
		d.Fail()
		return 0
	}
	d.B = d.B[n:]
	return v
}

func (d *Decoder) Int() int64 {
	v, n := binary.Varint(d.B)
	if n <= 0 {
		d.Fail()
		return 0
	}
	d.B = d.B[n:]
	return v
}

func (d *Decoder) fixed64() uint64 {
	if len(d.B) < 8 {
		d.Fail()
		return 0
	}
	v := binary.BigEndian.Uint64(d.B)
	d.B = d.B[8:]
	return v
}

func (d *Decoder) Bytes() []byte {
	n := d.Uint()
	if n > uint64(len(d.B)) {
		d.Fail()
		return nil
	}
	v := d.B[:n:n]
	d.B = d.B[n:]
	return v
}

func (d *Decoder) Str() string { return string(d.Bytes()) }

// Count reads a number of items of at least one byte each.
func (d *Decoder) Count() int {
	n := d.Uint()
	if n > uint64(len(d.B)) {
		d.Fail()
		return 0
	}
	return int(n)
}

func (d *Decoder) strMap() map[string]string {
	n := d.Count()
	if n == 0 {
		return nil
	}
	m := make(map[string]string, n)
	for i := 0; i < n && d.Err == nil; i++ {
		k := d.Str()
		m[k] = d.Str()
	}
	return m
}

// End returns the first error; bytes left over are one.
func (d *Decoder) End() error {
	if d.Err == nil && len(d.B) != 0 {
		d.Fail()
	}
	return d.Err
}

func appendBytes(b, v []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(v))), v...)
}

func appendStr(b []byte, v string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(v))), v...)
}

func appendStrMap(b []byte, m map[string]string) []byte {
	b = binary.AppendUvarint(b, uint64(len(m)))
	for _, k := range sortedKeys(m) {
		b = appendStr(appendStr(b, k), m[k])
	}
	return b
}
