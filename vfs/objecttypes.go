package vfs

import (
	"io"
	"time"

	"ogw/vfs/internal/checksum"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/listing"
	"ogw/vfs/internal/objects"
	"ogw/vfs/internal/receive"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/uploads"
)

// ETag of a content, without quotes. Every object always has one, which changes
// when its content does: the MD5 of the bytes, for an object of parts that of the
// parts' MD5s and "-N", else one made of inode and version.
type ETag = objects.ETag

// Preconditions of a request, RFC 9110 section 13 and S3's conditional
// writes. An ETag of "*" means any existing object.
type Preconditions = objects.Preconditions

// ConditionError is ErrPrecondition or ErrNotModified with the condition that did not
// hold.
type ConditionError = objects.ConditionError

// PartInfo describes an uploaded part.
type PartInfo = objects.PartInfo

// PartError is ErrBadPart or ErrPartTooSmall with the part. ETag is what was asked
// for, or the part's own.
type PartError = objects.PartError

// MD5Error is ErrBadDigest with both digests.
type MD5Error = receive.MD5Error

// CompletePart names one part in CompleteUpload.
type CompletePart = objects.CompletePart

// ChecksumTypeError means that a part carries another checksum than its upload
// was created with, or none where the object's is made of the parts'. It is an
// ErrInvalid.
type ChecksumTypeError = objects.ChecksumTypeError

// MissingChecksumError means that CompleteUpload was not given the checksum of a
// part, where the object's is made of them. It is an ErrInvalid.
type MissingChecksumError = objects.MissingChecksumError

// ChecksumAlgorithm names an object checksum as S3 does (S3 API reference,
// "Checksum").
type ChecksumAlgorithm = checksum.Algorithm

const (
	ChecksumCRC32     = checksum.CRC32
	ChecksumCRC32C    = checksum.CRC32C
	ChecksumCRC64NVME = checksum.CRC64NVME
	ChecksumSHA1      = checksum.SHA1
	ChecksumSHA256    = checksum.SHA256
	ChecksumSHA512    = checksum.SHA512
	ChecksumMD5       = checksum.MD5
	ChecksumXXHASH64  = checksum.XXHASH64
	ChecksumXXHASH3   = checksum.XXHASH3
	ChecksumXXHASH128 = checksum.XXHASH128
)

// Checksum of a content or a part.
type Checksum = checksum.Sum

// ObjectMeta is what an object carries besides its bytes.
type ObjectMeta = record.ObjectMeta

// ObjectPart is one part of a completed multipart object.
type ObjectPart = record.ObjectPart

// ObjectInfo describes an object (S3 HeadObject).
type ObjectInfo struct {
	Key      string
	Ino      Ino
	Size     int64
	ETag     ETag
	Modified time.Time
	Meta     ObjectMeta
	// MissingUser is how many of the user metadata are not in Meta.User, which has up to
	// 128 KiB of them.
	MissingUser int
	// Checksums always hold a full-object CRC64NVME when asked for
	// (GetOptions.Checksums), computed if need be, but for what GetOptions.StoredSums says.
	Checksums []Checksum
	Parts     []ObjectPart // nil unless multipart
	UID       uint32       // owner
	// Dir reports whether the key is a directory's own (it ends in "/").
	Dir bool
	// Symlink reports whether the entry is a symbolic link; its content is that of
	// the target if that lies within the same bucket.
	Mode uint32
}

// PutOptions of PutObject and the like.
type PutOptions struct {
	Meta ObjectMeta
	// Size is the length that the client stated, or -1. A body that differs
	// gives ErrShortBody or ErrLongBody, and nothing is published.
	Size int64
	// MaxSize bounds the body; 0 means MaxObjectBytes, MaxPartBytes for a part.
	MaxSize int64
	Cond    Preconditions
	// MD5 that the client stated (Content-MD5); a difference is ErrBadDigest.
	MD5 []byte
	// Finish, if set, is called after the last byte was read and before
	// anything is published; its checksums are stored with the object, and
	// its error aborts the operation and is returned.
	Finish func() ([]Checksum, error)
	// Stated is the algorithm of the checksum that Finish will return, "" if the
	// client states none. PutPart holds it to what the upload promised.
	Stated ChecksumAlgorithm
	// Owner of what is made; nil is the caller. Mode of a new file (0 means the
	// configured one).
	Owner *Cred
	Mode  uint32
	// Bucket, if not 0, is the inode of the bucket that Authorize described:
	// in another one, made meanwhile under the name, nothing is published
	// (ErrNoSuchBucket).
	Bucket Ino
	// MtimeNS, if not 0, is the modification time instead of now.
	MtimeNS int64
}

// body is what o says of a body, of which max bytes are allowed at the most.
func (o *PutOptions) body(from io.Reader, max int64) *receive.Body {
	if o.MaxSize > 0 {
		max = o.MaxSize
	}
	return &receive.Body{From: from, Size: o.Size, MaxSize: max, MD5: o.MD5, Finish: o.Finish}
}

// GetOptions of GetObject and HeadObject.
type GetOptions struct {
	Cond      Preconditions
	Checksums bool // fill ObjectInfo.Checksums, CRC64NVME always among them
	// StoredSums, if set, reports whether Checksums shall be those that are stored, since
	// to compute one all of the object is read before anything else.
	StoredSums func(*ObjectInfo) bool
}

// ObjectName names an object. With Bucket "" the key begins at the root: it is the
// whole path, as the REST door uses it, and top-level directories that are no legal
// buckets are within reach.
type ObjectName struct{ Bucket, Key string }

// Upload names the upload of the object with that ID.
func (n ObjectName) Upload(id string) UploadName { return UploadName{n, id} }

// parseKey splits the name of an object.
func parseKey(n ObjectName) (keypath.Key, error) { return keypath.Parse(n.Bucket, n.Key) }

// nameOf is the inverse of parseKey.
func nameOf(k *keypath.Key) ObjectName { return ObjectName{k.Bucket, k.Key} }

// UploadName names a multipart upload.
type UploadName struct {
	ObjectName
	ID string // as CreateUpload returned it
}

func parseUploadName(n UploadName) (keypath.UploadKey, error) {
	return keypath.ParseUpload(n.Bucket, n.Key, n.ID)
}

// CopyOptions of CopyObject.
type CopyOptions struct {
	// ReplaceMeta takes Meta instead of the source's; the grants are Meta's
	// either way.
	ReplaceMeta bool
	Meta        ObjectMeta
	// KeepUser takes the user metadata of the source, all of them, also with ReplaceMeta.
	KeepUser bool
	// SourceTags, if set, are the tags of the source that the copy takes along, with or without
	// ReplaceMeta: who copies must have the right to read them, and of a source with others
	// nothing is copied (ErrConflict), since policies were asked with these.
	SourceTags *string
	SourceCond Preconditions
	// SourceETag, if set, is that of the source from which Meta was made: of another
	// content nothing is copied (ErrConflict), whatever SourceCond asks.
	SourceETag ETag
	Cond       Preconditions // of the destination
	Owner      *Cred
	Mode       uint32
	// Bucket, if set, is the only one that the copy goes into, as in PutOptions.
	Bucket Ino
	// ChecksumAlgorithm of the copy, over all of it; "" takes what the source has.
	ChecksumAlgorithm ChecksumAlgorithm
}

// DeleteOptions of DeleteObject.
type DeleteOptions struct {
	Cond Preconditions
	// Empty refuses a key "x/" whose directory has entries, with ErrNotEmpty, as
	// rmdir does.
	Empty bool
}

// DeleteResult of one key of DeleteObjects.
type DeleteResult struct {
	Key string
	Err error // nil also when the key did not exist
}

// ListOptions of ListObjects; see ListObjects.
type ListOptions = listing.Options

// ListResult is one page of a listing, in byte order of keys.
type ListResult struct {
	Objects        []ObjectInfo // Checksums, Parts and Meta but its Headers are not filled
	CommonPrefixes []string
	Truncated      bool
	// Next is the StartAfter that continues; "" unless Truncated. When the
	// page ended with a common prefix, continuing skips all keys below it.
	Next string
}

// BucketInfo describes a bucket.
type BucketInfo struct {
	Name    string
	Ino     Ino
	Created time.Time
	UID     uint32
	GID     uint32
}

// UploadInfo describes a multipart upload.
type UploadInfo = uploads.Info

// CompleteOptions of CompleteUpload.
type CompleteOptions = uploads.CompleteOptions

// UploadMismatchError says that an upload is not what CompleteOptions state of it.
type UploadMismatchError = uploads.MismatchError
