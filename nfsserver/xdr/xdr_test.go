package xdr

import (
	"bytes"
	"errors"
	"testing"
)

func TestRoundTrip(t *testing.T) {
	var w Writer
	w.Uint32(7)
	w.Uint64(1 << 40)
	w.Bool(true)
	w.Bool(false)
	w.Opaque([]byte("abcde"))
	w.String("")
	w.Fixed([]byte("xy"))
	w.PutUint32(0, 8)
	if w.Len() != 4+8+4+4+4+8+4+4 {
		t.Fatalf("length %d", w.Len())
	}
	r := NewReader(w.B)
	if v := r.Uint32(); v != 8 {
		t.Errorf("uint32 %d", v)
	}
	if v := r.Uint64(); v != 1<<40 {
		t.Errorf("uint64 %d", v)
	}
	if !r.Bool() || r.Bool() {
		t.Error("bool")
	}
	if v := r.Opaque(5); string(v) != "abcde" {
		t.Errorf("opaque %q", v)
	}
	if v := r.String(0); v != "" {
		t.Errorf("string %q", v)
	}
	if v := r.Fixed(2); string(v) != "xy" {
		t.Errorf("fixed %q", v)
	}
	if r.Err() != nil || r.Len() != 0 {
		t.Errorf("err %v, %d bytes left", r.Err(), r.Len())
	}
}

func TestBounds(t *testing.T) {
	for _, c := range []struct {
		name string
		in   []byte
		read func(*Reader)
		want error
	}{
		{"short integer", []byte{0, 0, 0}, func(r *Reader) { r.Uint32() }, ErrShort},
		{"short hyper", make([]byte, 7), func(r *Reader) { r.Uint64() }, ErrShort},
		{"bool of 2", []byte{0, 0, 0, 2}, func(r *Reader) { r.Bool() }, ErrBadValue},
		{"opaque over its limit", []byte{0, 0, 0, 5, 1, 2, 3, 4, 5, 0, 0, 0}, func(r *Reader) { r.Opaque(4) }, ErrTooLong},
		{"opaque over the data", []byte{0, 0, 0, 5, 1, 2, 3, 4}, func(r *Reader) { r.Opaque(64) }, ErrShort},
		{"opaque without its padding", []byte{0, 0, 0, 5, 1, 2, 3, 4, 5}, func(r *Reader) { r.Opaque(64) }, ErrShort},
		{"opaque of 4 GiB", []byte{0xff, 0xff, 0xff, 0xf0}, func(r *Reader) { r.Opaque(1 << 20) }, ErrTooLong},
		{"fixed of negative length", make([]byte, 8), func(r *Reader) { r.Fixed(-1) }, ErrShort},
	} {
		r := NewReader(c.in)
		c.read(&r)
		if !errors.Is(r.Err(), c.want) {
			t.Errorf("%s: %v, want %v", c.name, r.Err(), c.want)
		}
		if r.Uint32() != 0 || r.Len() != 0 {
			t.Errorf("%s: the error does not stick", c.name)
		}
	}
}

func FuzzOpaque(f *testing.F) {
	f.Add([]byte{0, 0, 0, 3, 'a', 'b', 'c', 0}, 10)
	f.Fuzz(func(t *testing.T, b []byte, max int) {
		max &= 1 << 16
		r := NewReader(b)
		p := r.Opaque(max)
		if r.Err() != nil {
			if p != nil {
				t.Fatal("data beside an error")
			}
			return
		}
		if len(p) > max {
			t.Fatal("over the limit")
		}
		var w Writer
		w.Opaque(p)
		if n := len(b) - r.Len(); n != w.Len() || !bytes.Equal(w.B[:4+len(p)], b[:4+len(p)]) {
			t.Fatal("does not encode to what was decoded")
		}
	})
}
