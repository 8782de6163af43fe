package vfs

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// ConditionError is ErrPrecondition or ErrNotModified with the name of the condition,
// as headers have it, that did not hold.
type ConditionError struct {
	Condition string
	Err       error
}

// Error implements error.
func (e *ConditionError) Error() string { return e.Condition + ": " + e.Err.Error() }

// Unwrap returns the sentinel.
func (e *ConditionError) Unwrap() error { return e.Err }

// anyETag in a list of a precondition stands for every existing object.
const anyETag ETag = "*"

func (c *Preconditions) empty() bool {
	return len(c.IfMatch) == 0 && len(c.IfNoneMatch) == 0 &&
		c.IfModifiedSince.IsZero() && c.IfUnmodifiedSince.IsZero() && c.IfSize == nil && c.IfModifiedAt.IsZero()
}

// onlyAbsent reports whether all that is asked is that the object does not
// exist (If-None-Match: *), as who makes one may.
func (c *Preconditions) onlyAbsent() bool {
	return len(c.IfMatch) == 0 && c.IfModifiedSince.IsZero() && c.IfUnmodifiedSince.IsZero() &&
		c.IfSize == nil && c.IfModifiedAt.IsZero() && len(c.IfNoneMatch) == 1 && c.IfNoneMatch[0] == "*"
}

// checkRead decides a read of an existing object in the order of RFC 9110
// section 13.2.2: nil, ErrPrecondition or ErrNotModified. Dates compare in
// whole seconds, which is all that HTTP can say.
func (c *Preconditions) checkRead(etag ETag, modified time.Time) error {
	if err := c.checkUnchanged(etag, modified); err != nil {
		return err
	}
	if len(c.IfNoneMatch) > 0 {
		if matchesWeakly(c.IfNoneMatch, etag) {
			return &ConditionError{"If-None-Match", ErrNotModified}
		}
	} else if !c.IfModifiedSince.IsZero() && !modified.Truncate(time.Second).After(c.IfModifiedSince) {
		return &ConditionError{"If-Modified-Since", ErrNotModified}
	}
	return nil
}

// checkSource decides a copy by its source: as checkRead, except that what
// was not modified fails (S3 CopyObject).
func (c *Preconditions) checkSource(etag ETag, modified time.Time) error {
	var failed *ConditionError
	if errors.As(c.checkRead(etag, modified), &failed) {
		return &ConditionError{"x-amz-copy-source-" + failed.Condition, ErrPrecondition}
	}
	return nil
}

// checkAbsent decides a change of an object that does not exist:
// ErrNoSuchKey where If-Match names one (S3 conditional writes).
func (c *Preconditions) checkAbsent(k *objectKey) error {
	if len(c.IfMatch) > 0 {
		return fmt.Errorf("If-Match: %w", k.noSuchKey())
	}
	return nil
}

// checkWrite decides a change of an object that exists: nil or ErrPrecondition.
func (c *Preconditions) checkWrite(etag ETag, modified time.Time, size int64) error {
	if err := c.checkUnchanged(etag, modified); err != nil {
		return err
	}
	if c.IfSize != nil && *c.IfSize != size {
		return &ConditionError{"x-amz-if-match-size", ErrPrecondition}
	}
	if !c.IfModifiedAt.IsZero() && !modified.Truncate(time.Second).Equal(c.IfModifiedAt.Truncate(time.Second)) {
		return &ConditionError{"x-amz-if-match-last-modified-time", ErrPrecondition}
	}
	if matchesWeakly(c.IfNoneMatch, etag) {
		return &ConditionError{"If-None-Match", ErrPrecondition}
	}
	return nil
}

func (c *Preconditions) checkUnchanged(etag ETag, modified time.Time) error {
	if len(c.IfMatch) > 0 {
		if !matchesStrongly(c.IfMatch, etag) {
			return &ConditionError{"If-Match", ErrPrecondition}
		}
	} else if !c.IfUnmodifiedSince.IsZero() && modified.Truncate(time.Second).After(c.IfUnmodifiedSince) {
		return &ConditionError{"If-Unmodified-Since", ErrPrecondition}
	}
	return nil
}

// matchesStrongly compares as If-Match does (RFC 9110 section 8.8.3.2): ours
// are strong, so a weak one (W/…) never matches.
func matchesStrongly(list []ETag, etag ETag) bool {
	for _, e := range list {
		if e == anyETag || e == etag {
			return true
		}
	}
	return false
}

// matchesWeakly compares as If-None-Match does.
func matchesWeakly(list []ETag, etag ETag) bool {
	for _, e := range list {
		if e == anyETag || ETag(strings.TrimPrefix(string(e), "W/")) == etag {
			return true
		}
	}
	return false
}
