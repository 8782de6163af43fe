package vfs

import (
	"encoding/binary"
	"fmt"

	"ogw/cluster"
)

// extent maps a range of a content to where its bytes are. What no extent
// covers is a hole and reads as zeros. Extents of one content never overlap.
//
// Value: kind (1 byte), then
//
//	inline  the bytes themselves
//	blob    uvarints: length, blob sequence number, offset in the blob, size of the blob; CRC64NVME of the whole blob (8)
//	ref     uvarints: length, source content, offset in the source
//
// A blob belongs to the content whose ID it carries: a blob extent of
// content C always names a blob of C. Other contents reach it with a ref
// extent and a ref key; a ref extent never names a content that has ref
// extents over the same range, so a read follows at most one.
type extent struct {
	off  int64 // within the content; part of the key
	len  int64
	kind extentKind

	data []byte // inline

	seq      uint64 // blob
	blobOff  int64
	blobSize int64
	blobCRC  uint64

	src    ContentID // ref
	srcOff int64
}

type extentKind byte

const (
	extentInline extentKind = 1
	extentBlob   extentKind = 2
	extentRef    extentKind = 3
)

func (e *extent) end() int64 { return e.off + e.len }

func (e *extent) blobID(c ContentID) cluster.BlobID {
	return cluster.BlobID{Content: uint64(c), Seq: e.seq}
}

func (e *extent) encode() []byte {
	switch e.kind {
	case extentInline:
		return append([]byte{byte(extentInline)}, e.data...)
	case extentBlob:
		b := []byte{byte(extentBlob)}
		for _, v := range [...]uint64{uint64(e.len), e.seq, uint64(e.blobOff), uint64(e.blobSize)} {
			b = binary.AppendUvarint(b, v)
		}
		return binary.BigEndian.AppendUint64(b, e.blobCRC)
	default:
		b := []byte{byte(extentRef)}
		for _, v := range [...]uint64{uint64(e.len), uint64(e.src), uint64(e.srcOff)} {
			b = binary.AppendUvarint(b, v)
		}
		return b
	}
}

// decodeExtent decodes the value stored for offset off. The result keeps v.
func decodeExtent(off int64, v []byte) (extent, error) {
	d := decoder{b: v, what: "extent"}
	e := extent{off: off, kind: extentKind(d.byte())}
	switch e.kind {
	case extentInline:
		e.data, e.len = d.b, int64(len(d.b))
		d.b = nil
	case extentBlob:
		e.len, e.seq = int64(d.uint()), d.uint()
		e.blobOff, e.blobSize = int64(d.uint()), int64(d.uint())
		e.blobCRC = d.fixed64()
		if e.blobOff < 0 || e.blobSize < 0 || e.len > e.blobSize-e.blobOff {
			d.fail()
		}
	case extentRef:
		e.len, e.src, e.srcOff = int64(d.uint()), ContentID(d.uint()), int64(d.uint())
		if e.srcOff < 0 || e.srcOff > MaxFileBytes-e.len {
			d.fail()
		}
	default:
		d.fail()
	}
	if off < 0 || e.len <= 0 || off > MaxFileBytes-e.len {
		d.fail()
	}
	return e, d.end()
}

// slice returns the part of e within [from, to), which must lie within e.
func (e *extent) slice(from, to int64) extent {
	s, skip := *e, from-e.off
	s.off, s.len = from, to-from
	switch e.kind {
	case extentInline:
		s.data = e.data[skip : skip+s.len]
	case extentBlob:
		s.blobOff += skip
	case extentRef:
		s.srcOff += skip
	}
	return s
}

func parseExtentKey(k []byte) (ContentID, int64, error) {
	if len(k) != 17 || k[0] != tabExtent {
		return 0, 0, fmt.Errorf("%w: extent key %x", ErrCorrupt, k)
	}
	return ContentID(binary.BigEndian.Uint64(k[1:])), int64(binary.BigEndian.Uint64(k[9:])), nil
}
