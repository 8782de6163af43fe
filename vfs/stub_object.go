package vfs

import (
	"context"
	"io"
)

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

// collectUpload removes what is left of an upload that was queued
// (queueUpload): part records, the blobs that its content does not name, and
// its holds on others (releaseRef). Batches are bounded by fs.collectBatch.
// It must do nothing when called again.
func (fs *FS) collectUpload(ctx context.Context, upload ContentID) error { return ErrNotSupported }

// partExtents returns the extents of a part record ('p'), for Check.
func partExtents(v []byte) ([]extent, error) { return nil, ErrNotSupported }
