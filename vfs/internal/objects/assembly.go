package objects

import (
	"bytes"
	"crypto/md5"
	"fmt"
	"hash"

	"ogw/cluster"
	"ogw/vfs/internal/checksum"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

// Assembly makes one object of the parts that a client named, as they come
// by in order of their numbers: it checks each, gives its extents their place
// in the object, and adds up sums.
type Assembly struct {
	Upload *record.Upload
	want   []CompletePart
	min    int64 // bytes of each part but the last
	next   int   // index of the part that must come next

	Size, Used int64
	sums       hash.Hash // MD5 of the parts' MD5s
	CRC        uint64
	NoCRC      bool
	full       []byte    // checksum of the whole, of algorithms that combine
	composite  hash.Hash // checksum of the parts' checksums
	noSum      bool      // a part lacks the upload's checksum
	parts      []record.ObjectPart
	Refs       bool
}

// PartError is ErrBadPart or ErrPartTooSmall with the part. ETag is what was asked
// for, or the part's own.
type PartError struct {
	Number int
	ETag   ETag
	Size   int64
	Err    error
}

// Error implements error.
func (e *PartError) Error() string { return fmt.Sprintf("part %d: %v", e.Number, e.Err) }

// Unwrap returns the cause.
func (e *PartError) Unwrap() error { return e.Err }

// CheckParts checks what can be checked without the parts.
func CheckParts(want []CompletePart) error {
	if len(want) == 0 {
		return fmt.Errorf("no parts: %w", fserr.ErrBadPart)
	}
	last := 0
	for _, p := range want {
		if p.Number < 1 || p.Number > MaxParts {
			return fmt.Errorf("part %d, 1 to %d are allowed: %w", p.Number, MaxParts, fserr.ErrBadPartNumber)
		}
		if p.Number <= last {
			return fmt.Errorf("part %d behind part %d: %w", p.Number, last, fserr.ErrPartOrder)
		}
		last = p.Number
	}
	return nil
}

// NewAssembly returns that of the parts of u that a client wants, all of which but the
// last have minBytes or more.
func NewAssembly(u *record.Upload, want []CompletePart, minBytes int64) *Assembly {
	a := &Assembly{Upload: u, want: want, min: minBytes, sums: md5.New(), noSum: u.Alg == ""}
	if u.Composite {
		a.composite, _ = u.Alg.New() // known since CreateUpload
	}
	return a
}

// Read takes parts, up to limit extents, and returns these in offsets within
// the object. done reports whether no part is missing.
func (a *Assembly) Read(r cluster.Reader, limit int) (list []record.Extent, done bool, err error) {
	if a.next == len(a.want) {
		return nil, true, nil
	}
	err = EachPart(r, a.Upload.ID, a.want[a.next].Number, func(p *record.Part) error {
		want := &a.want[a.next]
		if p.Number < want.Number {
			return nil // the client left it out
		}
		if p.Number > want.Number || len(list) > 0 && len(list)+len(p.Extents) > limit {
			return cluster.ErrStop
		}
		at := a.Size
		if err := a.add(want, p); err != nil {
			return err
		}
		for _, e := range p.Extents {
			e.Off += at
			list = append(list, e)
		}
		if a.next++; a.next == len(a.want) {
			return cluster.ErrStop
		}
		return nil
	})
	if err == nil && a.next < len(a.want) && len(list) == 0 {
		// Neither stopped by the limit nor at the end: the part is not there.
		missing := &a.want[a.next]
		err = &PartError{Number: missing.Number, ETag: missing.ETag, Err: fserr.ErrBadPart}
	}
	return list, a.next == len(a.want), err
}

// add checks a part and adds it up.
func (a *Assembly) add(want *CompletePart, p *record.Part) error {
	if want.ETag != "" && want.ETag != partETag(p.Sum[:]) {
		return &PartError{p.Number, want.ETag, p.Size, fserr.ErrBadPart}
	}
	if a.composite != nil && len(want.Checksums) == 0 {
		return &MissingChecksumError{a.Upload.Alg, p.Number}
	}
	for _, c := range want.Checksums {
		if !bytes.Equal(c.Value, checksumOfPart(p, c.Algorithm)) {
			return &PartError{p.Number, want.ETag, p.Size, fmt.Errorf("another %s: %w", c.Algorithm, fserr.ErrBadPart)}
		}
	}
	if p.Size < a.min && a.next < len(a.want)-1 {
		return &PartError{p.Number, partETag(p.Sum[:]), p.Size, fmt.Errorf("%d bytes, all but the last have %d at least: %w", p.Size, a.min, fserr.ErrPartTooSmall)}
	}
	if a.Size > MaxBytes-p.Size {
		return TooLarge(MaxBytes)
	}
	a.sums.Write(p.Sum[:])
	a.addSums(p)
	a.Size += p.Size
	for i := range p.Extents {
		if e := &p.Extents[i]; e.Kind == record.ExtentRef {
			a.Refs = true
		}
		a.Used += p.Extents[i].Len
	}
	return nil
}

func (a *Assembly) addSums(p *record.Part) {
	if !p.HasCRC {
		a.NoCRC = true
	}
	if p.Size > 0 {
		a.CRC = cluster.CombineCRC64(a.CRC, p.CRC, p.Size)
	}
	op := record.ObjectPart{Number: p.Number, Size: p.Size}
	if sum := checksumOfPart(p, a.Upload.Alg); a.Upload.Alg != "" && sum != nil {
		op.Checksum = sum
		if a.composite != nil {
			a.composite.Write(sum)
		} else {
			a.full = checksum.Combine(a.Upload.Alg, a.full, sum, p.Size)
		}
	} else {
		a.noSum = true
	}
	a.parts = append(a.parts, op)
}

// Object returns what the inode says of the whole. said is what the client
// says its checksum is, nil for nothing.
func (a *Assembly) Object(said *checksum.Sum) (record.Object, error) {
	o := record.Object{Sum: a.sums.Sum(nil), NParts: len(a.parts), Parts: a.parts}
	var own *checksum.Sum
	switch {
	case a.noSum:
	case a.composite != nil:
		own = &checksum.Sum{Algorithm: a.Upload.Alg, Value: a.composite.Sum(nil), Parts: len(a.parts)}
	default:
		own = &checksum.Sum{Algorithm: a.Upload.Alg, Value: a.full}
	}
	if own != nil && own.Algorithm != checksum.CRC64NVME {
		o.Checksums = []checksum.Sum{*own}
	}
	if said == nil {
		return o, nil
	}
	if said.Algorithm == checksum.CRC64NVME && !a.NoCRC {
		own = &checksum.Sum{Algorithm: said.Algorithm, Value: checksum.CRC64Bytes(a.CRC)}
	}
	if own == nil || said.Algorithm != own.Algorithm || !bytes.Equal(said.Value, own.Value) ||
		said.Parts != 0 && said.Parts != own.Parts {
		return o, fmt.Errorf("%s of the whole object: %w", said.Algorithm, fserr.ErrBadDigest)
	}
	return o, nil
}
