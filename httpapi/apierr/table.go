package apierr

import (
	"context"
	"errors"
	"net/http"

	"ogw/vfs"
	"ogw/vfs/clients/guess"
)

// The errors that the doors find themselves.
var (
	ErrBadRequest       = errors.New("bad request")
	ErrUnauthorized     = errors.New("authentication required")
	ErrForbidden        = errors.New("not allowed")
	ErrCrossOrigin      = errors.New("cross-origin request refused")
	ErrMethod           = errors.New("method not allowed")
	ErrSlowBody         = errors.New("the body stopped arriving")
	ErrLengthRequired   = errors.New("length required")
	ErrHeadersTooLarge  = errors.New("metadata headers too large")
	ErrUnsupported      = errors.New("not supported")
	ErrManyRequests     = errors.New("too many requests in flight")
	ErrUnknownOperation = errors.New("no such operation")
)

// Entry maps one sentinel.
type Entry struct {
	Err    error
	Status int    // HTTP status code
	Code   string // stable, for programs
}

// Table holds every sentinel once. The first entry that errors.Is finds
// wins, so specific errors stand before those that they wrap.
var Table = []Entry{
	{vfs.ErrPrecondition, http.StatusPreconditionFailed, "precondition_failed"}, // also of what does not exist
	{vfs.ErrNotModified, http.StatusNotModified, "not_modified"},
	{ErrSlowBody, http.StatusRequestTimeout, "body_timeout"},
	{ErrBadRequest, http.StatusBadRequest, "bad_request"},
	{ErrUnauthorized, http.StatusUnauthorized, "unauthorized"},
	{guess.ErrThrottled, http.StatusTooManyRequests, "too_many_attempts"},
	{ErrForbidden, http.StatusForbidden, "forbidden"},
	{ErrCrossOrigin, http.StatusForbidden, "cross_origin"},
	{ErrMethod, http.StatusMethodNotAllowed, "method_not_allowed"},
	{ErrLengthRequired, http.StatusLengthRequired, "length_required"},
	{ErrHeadersTooLarge, http.StatusRequestHeaderFieldsTooLarge, "headers_too_large"},
	{ErrUnsupported, http.StatusNotImplemented, "not_supported"},
	{ErrManyRequests, http.StatusServiceUnavailable, "too_many_requests"},
	{ErrUnknownOperation, http.StatusNotFound, "no_such_operation"},
	{vfs.ErrBackupEnded, http.StatusGone, "backup_ended"},

	{vfs.ErrNoSuchKey, http.StatusNotFound, "not_found"},
	{vfs.ErrNoSuchBucket, http.StatusNotFound, "no_such_bucket"},
	{vfs.ErrNoSuchUser, http.StatusNotFound, "no_such_user"},
	{vfs.ErrNoSuchUpload, http.StatusNotFound, "no_such_upload"},
	{vfs.ErrBucketExists, http.StatusConflict, "bucket_exists"},
	{vfs.ErrBucketOwned, http.StatusConflict, "bucket_exists"},
	{vfs.ErrBucketNotEmpty, http.StatusConflict, "bucket_not_empty"},
	{vfs.ErrBadBucketName, http.StatusBadRequest, "bad_bucket_name"},
	{vfs.ErrACLsDisabled, http.StatusBadRequest, "acls_disabled"},
	{vfs.ErrACLGrants, http.StatusBadRequest, "acl_grants"},
	{vfs.ErrWriteOffset, http.StatusConflict, "write_offset"},
	{vfs.ErrAppendMeta, http.StatusBadRequest, "append_metadata"},
	{vfs.ErrReservedName, http.StatusForbidden, "reserved_name"},
	{vfs.ErrUserExists, http.StatusConflict, "user_exists"},
	{vfs.ErrUIDTaken, http.StatusConflict, "uid_taken"},
	{vfs.ErrSealed, http.StatusServiceUnavailable, "sealed"},
	{vfs.ErrKeyTooLong, http.StatusRequestURITooLong, "path_too_long"},
	{vfs.ErrNameTooLong, http.StatusRequestURITooLong, "name_too_long"},
	{vfs.ErrBadPart, http.StatusBadRequest, "bad_part"},
	{vfs.ErrPartOrder, http.StatusBadRequest, "part_order"},
	{vfs.ErrPartTooSmall, http.StatusBadRequest, "part_too_small"},
	{vfs.ErrBadPartNumber, http.StatusBadRequest, "bad_part_number"},
	{vfs.ErrObjectTooLarge, http.StatusRequestEntityTooLarge, "too_large"},
	{vfs.ErrFileTooLarge, http.StatusRequestEntityTooLarge, "too_large"},
	{vfs.ErrBadRange, http.StatusRequestedRangeNotSatisfiable, "bad_range"},
	{vfs.ErrBadDigest, http.StatusBadRequest, "digest_mismatch"},
	{vfs.ErrShortBody, http.StatusBadRequest, "short_body"},
	{vfs.ErrLongBody, http.StatusBadRequest, "long_body"},

	{vfs.ErrNotExist, http.StatusNotFound, "not_found"},
	{vfs.ErrExist, http.StatusConflict, "exists"},
	{vfs.ErrNotDir, http.StatusConflict, "not_a_directory"},
	{vfs.ErrIsDir, http.StatusConflict, "is_a_directory"},
	{vfs.ErrNotEmpty, http.StatusConflict, "not_empty"},
	{vfs.ErrAccess, http.StatusForbidden, "forbidden"},
	{vfs.ErrProtected, http.StatusForbidden, "protected"},
	{vfs.ErrPerm, http.StatusForbidden, "forbidden"},
	{vfs.ErrNoSpace, http.StatusInsufficientStorage, "no_space"},
	{vfs.ErrReadOnly, http.StatusServiceUnavailable, "read_only"},
	{vfs.ErrStale, http.StatusConflict, "changed_meanwhile"},
	{vfs.ErrTooManyLinks, http.StatusConflict, "too_many_links"},
	{vfs.ErrNotSupported, http.StatusNotImplemented, "not_supported"},
	{vfs.ErrBusy, http.StatusConflict, "busy"},
	{vfs.ErrNoAttr, http.StatusNotFound, "no_such_attribute"},
	{vfs.ErrAttrTooLarge, http.StatusRequestHeaderFieldsTooLarge, "headers_too_large"},
	{vfs.ErrRange, http.StatusBadRequest, "out_of_range"},
	{vfs.ErrNoData, http.StatusRequestedRangeNotSatisfiable, "no_data"},
	{vfs.ErrWouldBlock, http.StatusConflict, "locked"},
	{vfs.ErrDeadlock, http.StatusConflict, "deadlock"},
	{vfs.ErrTooLarge, http.StatusRequestEntityTooLarge, "change_too_large"},
	{vfs.ErrInvalid, http.StatusBadRequest, "invalid"},

	{vfs.ErrTimeout, http.StatusGatewayTimeout, "timeout"},
	{vfs.ErrUnavailable, http.StatusServiceUnavailable, "unavailable"},
	{vfs.ErrConflict, http.StatusServiceUnavailable, "conflict"},
	{vfs.ErrNoLocks, http.StatusServiceUnavailable, "no_locks"},
	{vfs.ErrInterrupted, http.StatusServiceUnavailable, "interrupted"},
	{vfs.ErrClosed, http.StatusServiceUnavailable, "shutting_down"},
	{vfs.ErrCorrupt, http.StatusInternalServerError, "corrupt"},
	{vfs.ErrBadHandle, http.StatusInternalServerError, "internal"},
	{vfs.ErrIO, http.StatusInternalServerError, "io"},

	{context.DeadlineExceeded, http.StatusGatewayTimeout, "timeout"},
	{context.Canceled, http.StatusServiceUnavailable, "canceled"},
}

// internal answers what no entry knows.
var internal = Entry{errors.New("internal error"), http.StatusInternalServerError, "internal"}

// Of returns the entry of err.
func Of(err error) Entry {
	for _, e := range Table {
		if errors.Is(err, e.Err) {
			return e
		}
	}
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return Entry{vfs.ErrObjectTooLarge, http.StatusRequestEntityTooLarge, "too_large"}
	}
	return internal
}
