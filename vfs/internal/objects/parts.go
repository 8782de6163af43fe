// Package objects has what describes an object beside its bytes: ETags and
// preconditions, parts, and how parts make one object. It keeps nothing and
// changes nothing.
package objects

import (
	"bytes"
	"cmp"
	"fmt"
	"ogw/cluster"
	"ogw/vfs/internal/checksum"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
	"time"
)

const (
	// MaxBytes bounds an object (S3: 5 TiB; AWS raised it to 50 TB, which is what
	// we allow).
	MaxBytes = 50_000_000_000_000
	// MaxParts bounds the parts of an object, which its inode lists.
	MaxParts = 10000
)

// ETag of a content (DESIGN: every object always has one that changes when
// its content does).
//
//	MD5 of the bytes        Parts == 0, Sum set
//	MD5 of the parts' MD5s  Parts > 0,  Sum set  "…-N"
//	opaque                  Sum nil: derived from inode and content version
type ETag string // without quotes

// Preconditions of a request, RFC 9110 section 13 and S3's conditional
// writes. An ETag of "*" means any existing object.
type Preconditions struct {
	IfMatch           []ETag
	IfNoneMatch       []ETag
	IfModifiedSince   time.Time // zero: none
	IfUnmodifiedSince time.Time
	// IfSize and IfModifiedAt (in whole seconds) are of changes of what exists.
	IfSize       *int64
	IfModifiedAt time.Time // zero: none
}

// PartInfo describes an uploaded part.
type PartInfo struct {
	Number    int
	Size      int64
	ETag      ETag // MD5
	Modified  time.Time
	Checksums []checksum.Sum
}

// ChecksumTypeError means that a part carries another checksum than its upload
// was created with, or none where the object's is made of the parts'. It is an
// ErrInvalid.
type ChecksumTypeError struct{ Want, Got checksum.Algorithm }

// Error implements error.
func (e *ChecksumTypeError) Error() string {
	got := cmp.Or(e.Got, "none")
	return fmt.Sprintf("the upload has checksums of algorithm %s, the part %s: %v", e.Want, got, fserr.ErrInvalid)
}

// Unwrap returns the sentinel.
func (e *ChecksumTypeError) Unwrap() error { return fserr.ErrInvalid }

// CompletePart names one part in CompleteUpload.
type CompletePart struct {
	Number    int
	ETag      ETag
	Checksums []checksum.Sum // to be compared, if given
}

// MissingChecksumError means that CompleteUpload was not given the checksum of a
// part, where the object's is made of them. It is an ErrInvalid.
type MissingChecksumError struct {
	Algorithm checksum.Algorithm
	Part      int
}

// Error implements error.
func (e *MissingChecksumError) Error() string {
	return fmt.Sprintf("the %s of part %d is missing: %v", e.Algorithm, e.Part, fserr.ErrInvalid)
}

// Unwrap returns the sentinel.
func (e *MissingChecksumError) Unwrap() error { return fserr.ErrInvalid }

// InfoOfPart describes p.
func InfoOfPart(p *record.Part) PartInfo {
	info := PartInfo{Number: p.Number, Size: p.Size, ETag: partETag(p.Sum[:]), Modified: time.Unix(0, p.ModifiedNS)}
	info.Checksums = append(info.Checksums, p.Checksums...)
	if p.HasCRC {
		info.Checksums = append(info.Checksums, checksum.Sum{Algorithm: checksum.CRC64NVME, Value: checksum.CRC64Bytes(p.CRC)})
	}
	return info
}

// checksumOfPart returns the part's value of an algorithm, nil if it has none.
func checksumOfPart(p *record.Part, alg checksum.Algorithm) []byte {
	if alg == checksum.CRC64NVME && p.HasCRC {
		return checksum.CRC64Bytes(p.CRC)
	}
	for _, c := range p.Checksums {
		if c.Algorithm == alg && c.Parts == 0 {
			return c.Value
		}
	}
	return nil
}

// EachPart calls fn for the parts from a number on.
func EachPart(r cluster.Reader, upload record.ContentID, from int, fn func(*record.Part) error) error {
	start, end := record.PartKey(upload, max(from, 0)), record.PartKey(upload, record.GarbagePart)
	if from > MaxParts {
		return nil
	}
	return r.Scan(start, end, cluster.ScanOptions{}, func(k, v []byte) error {
		p, err := record.DecodePart(k, bytes.Clone(v))
		if err != nil {
			return err
		}
		return fn(p)
	})
}

// TooLarge is the error of an object, or a part, of more than maxSize bytes.
func TooLarge(maxSize int64) error {
	return fmt.Errorf("more than %d bytes: %w", maxSize, fserr.ErrObjectTooLarge)
}
