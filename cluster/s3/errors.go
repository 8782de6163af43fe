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
)

func codeOf(err error) string {
	var r minio.ErrorResponse
	if errors.As(err, &r) {
		return r.Code
	}
	return ""
}

// mapError returns an error of package cluster. A missing bucket is not a
// missing blob.
func mapError(err error) error {
	if err == nil {
		return nil
	}
	var r minio.ErrorResponse
	if !errors.As(err, &r) {
		return cluster.Because(cluster.ErrUnavailable, err)
	}
	class := cluster.ErrUnavailable
	switch {
	case r.Code == minio.NoSuchKey:
		class = cluster.ErrNotFound
	case r.Code == codeQuota, r.Code == codeStorageFullX, r.StatusCode == http.StatusInsufficientStorage:
		class = cluster.ErrNoSpace
	}
	return fmt.Errorf("%w: %s: %w", class, r.Code, err)
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
