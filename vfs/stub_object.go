package vfs

import (
	"context"
	"io"
)

// Object operations name an object by bucket and key. A bucket of "" is the
// root itself: then key is the whole path, as the REST door uses it, and
// top-level directories that are no legal buckets are within reach. Access
// control is the door's.

// Object is an open object: the bytes that it had when it was opened.
type Object struct {
	Info ObjectInfo
	r    *contentReader
}

// ReadAt reads like io.ReaderAt. Large reads (1 MiB and more) are the fast ones.
func (o *Object) ReadAt(p []byte, off int64) (int, error) { return 0, ErrNotSupported }

// Close releases the bytes.
func (o *Object) Close() error { return nil }

// PutObject stores body under the key, atomically and durably: readers see
// the old object or the new. MD5 and CRC64NVME are computed on the way,
// concurrently with writing. A key that ends in "/" is the directory's own
// content (S3 PutObject).
func (fs *FS) PutObject(ctx context.Context, bucket, key string, body io.Reader, o PutOptions) (ObjectInfo, error) {
	return ObjectInfo{}, ErrNotSupported
}

// GetObject opens an object. With ErrNotModified and ErrPrecondition the
// Object's Info is filled, and there is nothing to close (S3 GetObject).
func (fs *FS) GetObject(ctx context.Context, bucket, key string, o GetOptions) (*Object, error) {
	return nil, ErrNotSupported
}

// HeadObject returns what GetObject would, without the bytes.
func (fs *FS) HeadObject(ctx context.Context, bucket, key string, o GetOptions) (ObjectInfo, error) {
	return ObjectInfo{}, ErrNotSupported
}

// DeleteObject removes an object; an absent key is no error unless Cond asks
// for it. existed tells. For "x/" it removes the directory's own content and
// its explicit mark: the directory stays while it has entries.
func (fs *FS) DeleteObject(ctx context.Context, bucket, key string, o DeleteOptions) (existed bool, err error) {
	return false, ErrNotSupported
}

// DeleteObjects removes many objects with few transactions; each key has its
// own result, in order (S3 DeleteObjects).
func (fs *FS) DeleteObjects(ctx context.Context, bucket string, keys []string) ([]DeleteResult, error) {
	return nil, ErrNotSupported
}

// CopyObject copies by reference, attributes included (S3 CopyObject). A copy
// onto itself replaces the metadata only.
func (fs *FS) CopyObject(ctx context.Context, srcBucket, srcKey, bucket, key string, o CopyOptions) (ObjectInfo, error) {
	return ObjectInfo{}, ErrNotSupported
}

// SetObjectMeta replaces one system header of an object without touching
// content and ETag; value "" removes it (tagging, ACLs of objects).
func (fs *FS) SetObjectHeader(ctx context.Context, bucket, key, name, value string) error {
	return ErrNotSupported
}

// ListObjects returns one page of the keys of a bucket in byte order: a seek
// and a scan, never a sort. Keys of explicit directories ("x/") are among
// them, implied directories are not (S3 ListObjectsV2).
func (fs *FS) ListObjects(ctx context.Context, bucket string, o ListOptions) (ListResult, error) {
	return ListResult{}, ErrNotSupported
}

// ValidBucketName tells whether name is legal for a bucket (DESIGN section 2).
func ValidBucketName(name string) bool { return false }

// CreateBucket makes a bucket or turns an implied top-level directory into
// one. ErrBadBucketName, ErrBucketExists, ErrBucketOwned.
func (fs *FS) CreateBucket(ctx context.Context, name string, owner *Cred) (BucketInfo, error) {
	return BucketInfo{}, ErrNotSupported
}

// HeadBucket describes a bucket; ErrNoSuchBucket.
func (fs *FS) HeadBucket(ctx context.Context, name string) (BucketInfo, error) {
	return BucketInfo{}, ErrNotSupported
}

// ListBuckets returns the buckets behind after in order of their names.
func (fs *FS) ListBuckets(ctx context.Context, after string, limit int) ([]BucketInfo, error) {
	return nil, ErrNotSupported
}

// DeleteBucket removes an empty bucket; ErrBucketNotEmpty. Unfinished
// uploads are aborted with it.
func (fs *FS) DeleteBucket(ctx context.Context, name string) error { return ErrNotSupported }

// BucketAttr returns a stored attribute of a bucket (ACL, …), nil if unset.
func (fs *FS) BucketAttr(ctx context.Context, name, attr string) ([]byte, error) {
	return nil, ErrNotSupported
}

// SetBucketAttr stores an attribute of a bucket; nil removes it.
func (fs *FS) SetBucketAttr(ctx context.Context, name, attr string, value []byte) error {
	return ErrNotSupported
}

// BucketUsage counts what a bucket holds.
func (fs *FS) BucketUsage(ctx context.Context, name string) (objects, bytes int64, err error) {
	return 0, 0, ErrNotSupported
}

// CreateUpload begins a multipart upload (S3 CreateMultipartUpload).
func (fs *FS) CreateUpload(ctx context.Context, bucket, key string, o PutOptions, alg ChecksumAlgorithm, composite bool) (UploadInfo, error) {
	return UploadInfo{}, ErrNotSupported
}

// GetUpload describes an upload; ErrNoSuchUpload.
func (fs *FS) GetUpload(ctx context.Context, bucket, key, upload string) (UploadInfo, error) {
	return UploadInfo{}, ErrNotSupported
}

// PutPart stores a part, durably, replacing an earlier one of that number.
func (fs *FS) PutPart(ctx context.Context, bucket, key, upload string, number int, body io.Reader, o PutOptions) (PartInfo, error) {
	return PartInfo{}, ErrNotSupported
}

// CopyPart stores a range of an object as a part, by reference. length -1
// means to the end (S3 UploadPartCopy).
func (fs *FS) CopyPart(ctx context.Context, srcBucket, srcKey string, off, length int64, bucket, key, upload string, number int, o CopyOptions) (PartInfo, error) {
	return PartInfo{}, ErrNotSupported
}

// CompleteUpload publishes the parts as one object, atomically; it is
// metadata only. Checks order, sizes, ETags and checksums of the parts.
// objectSum, if not nil, is what the client says the whole object's
// checksum is (S3 CompleteMultipartUpload).
func (fs *FS) CompleteUpload(ctx context.Context, bucket, key, upload string, parts []CompletePart, cond Preconditions, objectSum *Checksum) (ObjectInfo, error) {
	return ObjectInfo{}, ErrNotSupported
}

// AbortUpload drops an upload and its parts.
func (fs *FS) AbortUpload(ctx context.Context, bucket, key, upload string) error {
	return ErrNotSupported
}

// ListParts returns up to limit parts with numbers greater than after.
func (fs *FS) ListParts(ctx context.Context, bucket, key, upload string, after, limit int) ([]PartInfo, bool, error) {
	return nil, false, ErrNotSupported
}

// UploadPage is one page of ListUploads.
type UploadPage struct {
	Uploads        []UploadInfo
	CommonPrefixes []string
	Truncated      bool
	NextKey        string
	NextUpload     string
}

// ListUploads returns uploads in order of key, then of upload, behind
// (afterKey, afterUpload) (S3 ListMultipartUploads).
func (fs *FS) ListUploads(ctx context.Context, bucket, prefix, delimiter, afterKey, afterUpload string, limit int) (UploadPage, error) {
	return UploadPage{}, ErrNotSupported
}
