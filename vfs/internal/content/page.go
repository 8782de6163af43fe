package content

import (
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

// Segment is a range of a content and the place of its bytes, references
// resolved.
type Segment struct {
	Off, Len int64
	Data     []byte // inline; else
	Blob     cluster.BlobID
	BlobOff  int64
	BlobCRC  uint64 // of the whole blob
}

// End is the offset behind the segment.
func (s *Segment) End() int64 { return s.Off + s.Len }

// Page holds all segments within [From, To); the rest of it is holes.
type Page struct {
	From, To int64
	Segs     []Segment
}

// add appends a segment, which begins where the last one ends or behind:
// reading relies on it.
func (p *Page) add(s Segment) error {
	if n := len(p.Segs); n > 0 && s.Off < p.Segs[n-1].End() {
		return fmt.Errorf("%w: extents overlap at %d", fserr.ErrCorrupt, s.Off)
	}
	p.Segs = append(p.Segs, s)
	return nil
}

func newSegment(c record.ContentID, e *record.Extent, off int64) Segment {
	s := Segment{Off: off, Len: e.Len}
	if e.Kind == record.ExtentInline {
		s.Data = e.Data
	} else {
		s.Blob, s.BlobOff, s.BlobCRC = e.BlobID(c), e.BlobOff, e.BlobCRC
	}
	return s
}

// Find returns the index of the first segment that ends behind off.
func (p *Page) Find(off int64) int {
	lo, hi := 0, len(p.Segs)
	for lo < hi {
		if m := (lo + hi) / 2; p.Segs[m].End() <= off {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo
}
