package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"ogw/cluster"

	"github.com/minio/minio-go/v7"
)

// ErrUnfit: the endpoint or the bucket cannot hold a store.
var ErrUnfit = errors.New("the S3 endpoint lacks what a store needs")

// errBody: the bytes of an answer did not come whole.
var errBody = fmt.Errorf("%w: the answer broke off", cluster.ErrUnavailable)

// Codes that the client has no name for.
const (
	codeBusy         = "ServiceUnavailable"
	codeConflict     = "ConditionalRequestConflict" // two conditional writes of one key at a time
	codeQuota        = "QuotaExceeded"
	codeRange        = "InvalidRange"
	codeSlowDown     = "SlowDown"
	codeStorageFullX = "XMinioStorageFull"
	codeForeign      = "404 Not Found" // of somebody who does not speak S3
)

// response returns what the endpoint said of a request that it refused. An error document
// shows that a 404 is S3's: of one without, as a proxy gives whose backend is being started,
// the client says that there is no such object. It is in each answer but those to HEAD, which
// nothing here sends.
func response(err error) (r minio.ErrorResponse, refused bool) {
	refused = errors.As(err, &r)
	if r.StatusCode == http.StatusNotFound && r.XMLName.Local == "" {
		r.Code, r.Message = codeForeign, "the answer is none of S3"
	}
	return r, refused
}

func codeOf(err error) string {
	r, _ := response(err)
	return r.Code
}

// mapError returns an error of package cluster, never ErrNotFound: nothing but a read finds
// that a blob is missing (missingOr).
func mapError(err error) error {
	if err == nil {
		return nil
	}
	r, refused := response(err)
	if !refused {
		return cluster.Because(cluster.ErrUnavailable, err)
	}
	class := cluster.ErrUnavailable
	switch {
	case r.Code == codeQuota, r.Code == codeStorageFullX, r.StatusCode == http.StatusInsufficientStorage:
		class = cluster.ErrNoSpace
	case r.Code == codeForeign:
		err = r
	}
	return fmt.Errorf("%w: %s: %w", class, r.Code, err)
}

// missingOr is callerOr for a read, which finds that there is no such object. A missing
// bucket is not a missing blob.
func missingOr(ctx context.Context, err error) error {
	if ctx.Err() == nil && codeOf(err) == minio.NoSuchKey {
		return fmt.Errorf("%w: %w", cluster.ErrNotFound, err)
	}
	return callerOr(ctx, err)
}

// brokenOff is callerOr for err in the middle of an answer.
func brokenOff(ctx context.Context, err error) error {
	if e := ctx.Err(); e != nil {
		return e
	}
	return cluster.Because(errBody, err)
}

// callerOr returns why the caller of a request gave up, else the mapped err.
func callerOr(ctx context.Context, err error) error {
	if e := ctx.Err(); e != nil && err != nil {
		return e
	}
	return mapError(err)
}
