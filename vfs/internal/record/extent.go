package record

import (
	"encoding/binary"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
)

// MaxFileBytes bounds a file (8 EiB less one, what an off_t holds).
const MaxFileBytes = 1<<63 - 1

// Extent maps a range of a content to where its bytes are. What no extent
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
type Extent struct {
	Off  int64 // within the content; part of the key
	Len  int64
	Kind ExtentKind

	Data []byte // inline

	Seq      uint64 // blob
	BlobOff  int64
	BlobSize int64
	BlobCRC  uint64

	Src    ContentID // ref
	SrcOff int64
}

type ExtentKind byte

const (
	ExtentInline ExtentKind = 1
	ExtentBlob   ExtentKind = 2
	ExtentRef    ExtentKind = 3
)

func (e *Extent) End() int64 { return e.Off + e.Len }

func (e *Extent) BlobID(c ContentID) cluster.BlobID {
	return cluster.BlobID{Content: uint64(c), Seq: e.Seq}
}

func (e *Extent) Encode() []byte {
	switch e.Kind {
	case ExtentInline:
		return append([]byte{byte(ExtentInline)}, e.Data...)
	case ExtentBlob:
		b := []byte{byte(ExtentBlob)}
		for _, v := range [...]uint64{uint64(e.Len), e.Seq, uint64(e.BlobOff), uint64(e.BlobSize)} {
			b = binary.AppendUvarint(b, v)
		}
		return binary.BigEndian.AppendUint64(b, e.BlobCRC)
	default:
		b := []byte{byte(ExtentRef)}
		for _, v := range [...]uint64{uint64(e.Len), uint64(e.Src), uint64(e.SrcOff)} {
			b = binary.AppendUvarint(b, v)
		}
		return b
	}
}

// DecodeExtent decodes the value stored for offset off. The result keeps v.
func DecodeExtent(off int64, v []byte) (Extent, error) {
	d := Decoder{B: v, What: "extent"}
	e := Extent{Off: off, Kind: ExtentKind(d.Byte())}
	switch e.Kind {
	case ExtentInline:
		e.Data, e.Len = d.B, int64(len(d.B))
		d.B = nil
	case ExtentBlob:
		e.Len, e.Seq = int64(d.Uint()), d.Uint()
		e.BlobOff, e.BlobSize = int64(d.Uint()), int64(d.Uint())
		e.BlobCRC = d.fixed64()
		if e.BlobOff < 0 || e.BlobSize < 0 || e.Len > e.BlobSize-e.BlobOff {
			d.Fail()
		}
	case ExtentRef:
		e.Len, e.Src, e.SrcOff = int64(d.Uint()), ContentID(d.Uint()), int64(d.Uint())
		if e.SrcOff < 0 || e.SrcOff > MaxFileBytes-e.Len {
			d.Fail()
		}
	default:
		d.Fail()
	}
	if off < 0 || e.Len <= 0 || off > MaxFileBytes-e.Len {
		d.Fail()
	}
	return e, d.End()
}

// InlineBytes returns how many bytes an extent holds inline whose value has a length
// and begins with head: 0 if it is of another kind, or there is none.
func InlineBytes(head []byte, length int) int64 {
	if len(head) == 0 || ExtentKind(head[0]) != ExtentInline {
		return 0
	}
	return int64(length) - 1
}

// Slice returns the part of e within [from, to), which must lie within e.
func (e *Extent) Slice(from, to int64) Extent {
	s, skip := *e, from-e.Off
	s.Off, s.Len = from, to-from
	switch e.Kind {
	case ExtentInline:
		s.Data = e.Data[skip : skip+s.Len]
	case ExtentBlob:
		s.BlobOff += skip
	case ExtentRef:
		s.SrcOff += skip
	}
	return s
}

// ParseExtent decodes an extent and whose it is. What is inline aliases v.
func ParseExtent(k, v []byte) (ContentID, Extent, error) {
	c, off, err := ParseExtentKey(k)
	if err != nil {
		return 0, Extent{}, err
	}
	e, err := DecodeExtent(off, v)
	return c, e, err
}

func ParseExtentKey(k []byte) (ContentID, int64, error) {
	if len(k) != 17 || k[0] != TabExtent {
		return 0, 0, fmt.Errorf("%w: extent key %x", fserr.ErrCorrupt, k)
	}
	return ContentID(binary.BigEndian.Uint64(k[1:])), int64(binary.BigEndian.Uint64(k[9:])), nil
}

// Clip returns the part of e within [from, to).
func (e *Extent) Clip(from, to int64) Extent { return e.Slice(max(e.Off, from), min(e.End(), to)) }
