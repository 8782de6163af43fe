// Package xdr encodes and decodes External Data Representation (RFC 4506) by
// hand: no reflection, no allocation, and every length checked against what
// the caller allows and what is really there before anything is touched.
//
// Both types keep their first error (the Reader) or cannot fail (the Writer),
// so a decoder reads all fields in a row and checks once at the end.
package xdr

import (
	"encoding/binary"
	"errors"
)

// Unit is the size in bytes that every item is padded to (RFC 4506 section 3).
const Unit = 4

var (
	// ErrShort: the data ended before the item did.
	ErrShort = errors.New("xdr: data ends early")
	// ErrTooLong: a variable-length item is longer than its type allows.
	ErrTooLong = errors.New("xdr: item longer than allowed")
	// ErrBadValue: a boolean or union discriminant is none of its values.
	ErrBadValue = errors.New("xdr: illegal value")
)

// Pad returns how many zero bytes follow n bytes of opaque data.
func Pad(n int) int { return -n & (Unit - 1) }

// Reader decodes from a byte slice. After the first error all further reads
// return zero values.
type Reader struct {
	b   []byte
	err error
}

// NewReader returns a Reader over b. What Opaque returns aliases b.
func NewReader(b []byte) Reader { return Reader{b: b} }

// Err returns the first error.
func (r *Reader) Err() error { return r.err }

// Fail makes err the Reader's error unless it has one.
func (r *Reader) Fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.b = nil
}

// Len returns the number of undecoded bytes.
func (r *Reader) Len() int { return len(r.b) }

// Rest returns the undecoded bytes.
func (r *Reader) Rest() []byte { return r.b }

// Uint32 decodes an unsigned integer.
func (r *Reader) Uint32() uint32 {
	if len(r.b) < 4 {
		r.Fail(ErrShort)
		return 0
	}
	v := binary.BigEndian.Uint32(r.b)
	r.b = r.b[4:]
	return v
}

// Uint64 decodes an unsigned hyper integer.
func (r *Reader) Uint64() uint64 {
	if len(r.b) < 8 {
		r.Fail(ErrShort)
		return 0
	}
	v := binary.BigEndian.Uint64(r.b)
	r.b = r.b[8:]
	return v
}

// Bool decodes a boolean; anything but 0 and 1 is an error.
func (r *Reader) Bool() bool {
	v := r.Uint32()
	if v > 1 {
		r.Fail(ErrBadValue)
		return false
	}
	return v == 1
}

// Fixed decodes opaque data of exactly n bytes and its padding.
func (r *Reader) Fixed(n int) []byte {
	if n < 0 || n > len(r.b) || n+Pad(n) > len(r.b) {
		r.Fail(ErrShort)
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[n+Pad(n):]
	return v
}

// Opaque decodes variable-length opaque data of at most max bytes.
func (r *Reader) Opaque(max int) []byte {
	n := r.Uint32()
	if r.err != nil {
		return nil
	}
	if uint64(n) > uint64(max) {
		r.Fail(ErrTooLong)
		return nil
	}
	return r.Fixed(int(n))
}

// String decodes a string of at most max bytes.
func (r *Reader) String(max int) string { return string(r.Opaque(max)) }

// Writer encodes by appending to B.
type Writer struct{ B []byte }

// Uint32 encodes an unsigned integer.
func (w *Writer) Uint32(v uint32) { w.B = binary.BigEndian.AppendUint32(w.B, v) }

// Uint64 encodes an unsigned hyper integer.
func (w *Writer) Uint64(v uint64) { w.B = binary.BigEndian.AppendUint64(w.B, v) }

// Bool encodes a boolean.
func (w *Writer) Bool(v bool) {
	if v {
		w.Uint32(1)
	} else {
		w.Uint32(0)
	}
}

// Fixed encodes opaque data whose length the reader knows.
func (w *Writer) Fixed(p []byte) {
	w.B = append(w.B, p...)
	w.pad(len(p))
}

// Opaque encodes variable-length opaque data.
func (w *Writer) Opaque(p []byte) {
	w.Uint32(uint32(len(p)))
	w.Fixed(p)
}

// String encodes a string.
func (w *Writer) String(s string) {
	w.Uint32(uint32(len(s)))
	w.B = append(w.B, s...)
	w.pad(len(s))
}

// Len returns the number of bytes encoded so far.
func (w *Writer) Len() int { return len(w.B) }

// PutUint32 overwrites the integer at offset off.
func (w *Writer) PutUint32(off int, v uint32) { binary.BigEndian.PutUint32(w.B[off:], v) }

// Truncate drops everything behind the first n bytes.
func (w *Writer) Truncate(n int) { w.B = w.B[:n] }

func (w *Writer) pad(n int) {
	for i := Pad(n); i > 0; i-- {
		w.B = append(w.B, 0)
	}
}
