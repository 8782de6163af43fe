package s3

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"

	"ogw/cluster"

	"github.com/minio/minio-go/v7"
)

// numberKey is the metadata that holds the number of an object's writer.
const numberKey = "Ogw-Write"

// newNumber returns one that no other writer has.
func newNumber() string {
	var b [16]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// absent are the options of a write that makes an object and replaces none.
func absent(number string) minio.PutObjectOptions {
	o := minio.PutObjectOptions{UserMetadata: map[string]string{numberKey: number}}
	o.SetMatchETagExcept("*")
	return o
}

// put makes an object of a single request. The error is the endpoint's.
func (b *Blobs) put(ctx context.Context, key string, data []byte, number string) (info minio.UploadInfo, err error) {
	err = b.tries.retry(ctx, func(ctx context.Context) error {
		body := &body{data: data}
		defer body.detach()
		info, err = b.client.PutObject(ctx, b.bucket, key, body, int64(len(data)), "", "", absent(number))
		return err
	})
	return info, err
}

// upload is an object that is made of parts.
type upload struct {
	key   string
	id    string
	parts []minio.CompletePart
}

func (b *Blobs) beginUpload(ctx context.Context, key, number string) (*upload, error) {
	u := &upload{key: key}
	err := b.tries.retry(ctx, func(ctx context.Context) (err error) {
		u.id, err = b.client.NewMultipartUpload(ctx, b.bucket, key, minio.PutObjectOptions{
			UserMetadata: map[string]string{numberKey: number},
		})
		return err
	})
	return u, err
}

// putPart adds a part; one at a time.
func (b *Blobs) putPart(ctx context.Context, u *upload, data []byte) error {
	return b.tries.retry(ctx, func(ctx context.Context) error {
		body := &body{data: data}
		defer body.detach()
		part, err := b.client.PutObjectPart(ctx, b.bucket, u.key, u.id, len(u.parts)+1, body, int64(len(data)), minio.PutObjectPartOptions{})
		if err == nil {
			u.parts = append(u.parts, minio.CompletePart{PartNumber: part.PartNumber, ETag: part.ETag})
		}
		return err
	})
}

// complete makes the object. The error is the endpoint's.
func (b *Blobs) complete(ctx context.Context, u *upload) error {
	o := minio.PutObjectOptions{}
	o.SetMatchETagExcept("*")
	return b.tries.retry(ctx, func(ctx context.Context) error {
		_, err := b.client.CompleteMultipartUpload(ctx, b.bucket, u.key, u.id, u.parts, o)
		return err
	})
}

// abort drops the parts of u, also for a caller who has given up. What fails is
// left to abortStale.
func (b *Blobs) abort(ctx context.Context, u *upload) {
	ctx, cancel := bound(context.WithoutCancel(ctx))
	defer cancel()
	_ = b.client.AbortMultipartUpload(ctx, b.bucket, u.key, u.id)
}

// outcome returns what became of a write: err, unless the object is there.
func (b *Blobs) outcome(ctx context.Context, key, number string, err error) error {
	if !mayBeThere(err) || ctx.Err() != nil {
		return callerOr(ctx, err)
	}
	found, e := b.stat(ctx, key)
	switch {
	case e == nil && found.number == number:
		return nil // an earlier try made it, and its answer was lost
	case e == nil:
		return fmt.Errorf("%w: %s", cluster.ErrExists, key)
	case errors.Is(e, cluster.ErrNotFound):
		return callerOr(ctx, err)
	}
	return e
}

// mayBeThere reports whether the object of a write that failed may be there: the
// endpoint said so, does not know, or its answer was lost. One that refuses a body before
// it has all of it may end the connection, which takes the answer along.
func mayBeThere(err error) bool {
	switch code := codeOf(err); code {
	case minio.PreconditionFailed, minio.NoSuchUpload:
		return true
	default:
		return err != nil && (code == "" || temporary(err))
	}
}
