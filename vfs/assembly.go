package vfs

import (
	"bytes"
	"crypto/md5"
	"fmt"
	"hash"

	"ogw/cluster"
)

// assembly makes one object of the parts that a client named, as they come
// by in order of their numbers: it checks each, gives its extents their place
// in the object, and adds up sums.
type assembly struct {
	u    *uploadRecord
	want []CompletePart
	next int // index of the part that must come next

	size, used int64
	sums       hash.Hash // MD5 of the parts' MD5s
	crc        uint64
	noCRC      bool
	full       []byte    // checksum of the whole, of algorithms that combine
	composite  hash.Hash // checksum of the parts' checksums
	noSum      bool      // a part lacks the upload's checksum
	parts      []ObjectPart
	refs       bool
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

// checkOrder checks what can be checked without the parts.
func checkOrder(want []CompletePart) error {
	if len(want) == 0 {
		return fmt.Errorf("no parts: %w", ErrBadPart)
	}
	last := 0
	for _, p := range want {
		if p.Number < 1 || p.Number > MaxParts {
			return fmt.Errorf("part %d, 1 to %d are allowed: %w", p.Number, MaxParts, ErrBadPartNumber)
		}
		if p.Number <= last {
			return fmt.Errorf("part %d behind part %d: %w", p.Number, last, ErrPartOrder)
		}
		last = p.Number
	}
	return nil
}

func newAssembly(u *uploadRecord, want []CompletePart) *assembly {
	a := &assembly{u: u, want: want, sums: md5.New(), noSum: u.alg == ""}
	if u.composite {
		a.composite, _ = u.alg.New() // known since CreateUpload
	}
	return a
}

// read takes parts, up to limit extents, and returns these in offsets within
// the object. done tells that no part is missing.
func (a *assembly) read(r cluster.Reader, limit int) (list []extent, done bool, err error) {
	if a.next == len(a.want) {
		return nil, true, nil
	}
	err = eachPart(r, a.u.id, a.want[a.next].Number, func(p *part) error {
		want := &a.want[a.next]
		if p.number < want.Number {
			return nil // the client left it out
		}
		if p.number > want.Number || len(list) > 0 && len(list)+len(p.extents) > limit {
			return cluster.ErrStop
		}
		at := a.size
		if err := a.add(want, p); err != nil {
			return err
		}
		for _, e := range p.extents {
			e.off += at
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
		err = &PartError{Number: missing.Number, ETag: missing.ETag, Err: ErrBadPart}
	}
	return list, a.next == len(a.want), err
}

// add checks a part and adds it up.
func (a *assembly) add(want *CompletePart, p *part) error {
	if want.ETag != "" && want.ETag != partETag(p.sum[:]) {
		return &PartError{p.number, want.ETag, p.size, ErrBadPart}
	}
	if a.composite != nil && len(want.Checksums) == 0 {
		return &MissingChecksumError{a.u.alg, p.number}
	}
	for _, c := range want.Checksums {
		if !bytes.Equal(c.Value, p.checksum(c.Algorithm)) {
			return &PartError{p.number, want.ETag, p.size, fmt.Errorf("another %s: %w", c.Algorithm, ErrBadPart)}
		}
	}
	if p.size < MinPartBytes && a.next < len(a.want)-1 {
		return &PartError{p.number, partETag(p.sum[:]), p.size, fmt.Errorf("%d bytes, all but the last have %d at least: %w", p.size, MinPartBytes, ErrPartTooSmall)}
	}
	if a.size > MaxObjectBytes-p.size {
		return tooLarge(MaxObjectBytes)
	}
	a.sums.Write(p.sum[:])
	a.addSums(p)
	a.size += p.size
	for i := range p.extents {
		if e := &p.extents[i]; e.kind == extentRef {
			a.refs = true
		}
		a.used += p.extents[i].len
	}
	return nil
}

func (a *assembly) addSums(p *part) {
	if !p.hasCRC {
		a.noCRC = true
	}
	if p.size > 0 {
		a.crc = cluster.CombineCRC64(a.crc, p.crc, p.size)
	}
	op := ObjectPart{Number: p.number, Size: p.size}
	if sum := p.checksum(a.u.alg); a.u.alg != "" && sum != nil {
		op.Checksum = sum
		if a.composite != nil {
			a.composite.Write(sum)
		} else {
			a.full = combineChecksums(a.u.alg, a.full, sum, p.size)
		}
	} else {
		a.noSum = true
	}
	a.parts = append(a.parts, op)
}

// object returns what the inode says of the whole. said is what the client
// says its checksum is, nil for nothing.
func (a *assembly) object(said *Checksum) (objectPart, error) {
	o := objectPart{sum: a.sums.Sum(nil), nparts: len(a.parts), parts: a.parts}
	var own *Checksum
	switch {
	case a.noSum:
	case a.composite != nil:
		own = &Checksum{Algorithm: a.u.alg, Value: a.composite.Sum(nil), Parts: len(a.parts)}
	default:
		own = &Checksum{Algorithm: a.u.alg, Value: a.full}
	}
	if own != nil && own.Algorithm != ChecksumCRC64NVME {
		o.checksums = []Checksum{*own}
	}
	if said == nil {
		return o, nil
	}
	if said.Algorithm == ChecksumCRC64NVME && !a.noCRC {
		own = &Checksum{Algorithm: said.Algorithm, Value: crcBytes(a.crc)}
	}
	if own == nil || said.Algorithm != own.Algorithm || !bytes.Equal(said.Value, own.Value) ||
		said.Parts != 0 && said.Parts != own.Parts {
		return o, fmt.Errorf("%s of the whole object: %w", said.Algorithm, ErrBadDigest)
	}
	return o, nil
}
