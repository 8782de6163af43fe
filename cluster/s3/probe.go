package s3

import (
	"context"
	"fmt"
	"time"

	"github.com/minio/minio-go/v7"
)

// staleUpload is the age of an upload of parts that nobody will complete: a
// blob of 64 MiB takes minutes at the most.
const staleUpload = 24 * time.Hour

// probe finds out whether the endpoint can hold a store: by an object that is
// made, read, and then must not be replaced.
func (b *Blobs) probe(ctx context.Context) error {
	number := newNumber()
	key := b.prefix + "probe/" + number
	info, err := b.put(ctx, key, []byte(number), number)
	if err != nil {
		return callerOr(ctx, err)
	}
	defer func() { _ = b.deleteOne(context.WithoutCancel(ctx), key) }() // an object of 32 bytes
	if info.VersionID != "" && info.VersionID != "null" {
		return fmt.Errorf("%w: the bucket keeps versions, so that deleted data would stay", ErrUnfit)
	}
	found, err := b.stat(ctx, key)
	if err != nil {
		return err
	}
	if found.size != int64(len(number)) || found.number != number {
		return fmt.Errorf("%w: an object is not returned with the metadata that it was stored with", ErrUnfit)
	}
	if _, err := b.put(ctx, key, []byte(number), newNumber()); err == nil {
		return fmt.Errorf("%w: PutObject ignores the condition If-None-Match, so that data could be overwritten", ErrUnfit)
	} else if codeOf(err) != minio.PreconditionFailed {
		return callerOr(ctx, err)
	}
	if err := b.probeUpload(ctx, key); err != nil {
		return err
	}
	b.abortStale(ctx, found.modified)
	return nil
}

// probeUpload must not replace the object key by an upload of parts.
func (b *Blobs) probeUpload(ctx context.Context, key string) error {
	u, err := b.beginUpload(ctx, key, newNumber())
	if err != nil {
		return callerOr(ctx, err)
	}
	defer b.abort(ctx, u)
	if err := b.putPart(ctx, u, []byte("probe")); err != nil {
		return callerOr(ctx, err)
	}
	switch err := b.complete(ctx, u); {
	case err == nil:
		return fmt.Errorf("%w: CompleteMultipartUpload ignores the condition If-None-Match, so that data could be overwritten", ErrUnfit)
	case codeOf(err) != minio.PreconditionFailed:
		return callerOr(ctx, err)
	}
	return nil
}

// abortStale frees what processes left behind that ended while they wrote. It
// is only about space: what fails is tried at the next start.
func (b *Blobs) abortStale(ctx context.Context, now time.Time) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for u := range b.client.ListIncompleteUploads(ctx, b.bucket, b.prefix, true) {
		if u.Err != nil {
			return
		}
		if now.Sub(u.Initiated) > staleUpload {
			b.abort(ctx, &upload{key: u.Key, id: u.UploadID})
		}
	}
}
