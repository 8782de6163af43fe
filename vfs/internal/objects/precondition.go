package objects

import (
	"errors"
	"fmt"
	"ogw/vfs/internal/fserr"
	"strings"
	"time"
)

// ConditionError is ErrPrecondition or ErrNotModified with the condition that did not
// hold.
type ConditionError struct {
	// Condition is its name in RFC 9110, or that of the field of Preconditions for
	// what that has not.
	Condition string
	Source    bool // it is one of a copy's source
	Err       error
}

// Error implements error.
func (e *ConditionError) Error() string {
	if e.Source {
		return "source, " + e.Condition + ": " + e.Err.Error()
	}
	return e.Condition + ": " + e.Err.Error()
}

// Unwrap returns the sentinel.
func (e *ConditionError) Unwrap() error { return e.Err }

// anyETag in a list of a precondition stands for every existing object.
const anyETag ETag = "*"

// NoConditions reports whether nothing is asked.
func NoConditions(c *Preconditions) bool {
	return len(c.IfMatch) == 0 && len(c.IfNoneMatch) == 0 &&
		c.IfModifiedSince.IsZero() && c.IfUnmodifiedSince.IsZero() && c.IfSize == nil && c.IfModifiedAt.IsZero()
}

// OnlyAbsent reports whether all that is asked is that the object does not
// exist (If-None-Match: *), as who makes one may.
func OnlyAbsent(c *Preconditions) bool {
	return len(c.IfMatch) == 0 && c.IfModifiedSince.IsZero() && c.IfUnmodifiedSince.IsZero() &&
		c.IfSize == nil && c.IfModifiedAt.IsZero() && len(c.IfNoneMatch) == 1 && c.IfNoneMatch[0] == "*"
}

// CheckRead decides a read of an existing object in the order of RFC 9110
// section 13.2.2: nil, ErrPrecondition or ErrNotModified. Dates compare in
// whole seconds, which is all that HTTP can say.
func CheckRead(c *Preconditions, etag ETag, modified time.Time) error {
	if err := checkUnchanged(c, etag, modified); err != nil {
		return err
	}
	if len(c.IfNoneMatch) > 0 {
		if matchesWeakly(c.IfNoneMatch, etag) {
			return &ConditionError{Condition: "If-None-Match", Err: fserr.ErrNotModified}
		}
	} else if !c.IfModifiedSince.IsZero() && !modified.Truncate(time.Second).After(c.IfModifiedSince) {
		return &ConditionError{Condition: "If-Modified-Since", Err: fserr.ErrNotModified}
	}
	return nil
}

// CheckSource decides a copy by its source: as checkRead, except that what
// was not modified fails (S3 CopyObject).
func CheckSource(c *Preconditions, etag ETag, modified time.Time) error {
	var failed *ConditionError
	if errors.As(CheckRead(c, etag, modified), &failed) {
		return &ConditionError{Condition: failed.Condition, Source: true, Err: fserr.ErrPrecondition}
	}
	return nil
}

// CheckAbsent decides a change of an object that does not exist:
// missing, which is ErrNoSuchKey, where If-Match names one (S3 conditional writes).
func CheckAbsent(c *Preconditions, missing error) error {
	if len(c.IfMatch) > 0 {
		return fmt.Errorf("If-Match: %w", missing)
	}
	return nil
}

// CheckChange decides a change of an object that exists: nil or ErrPrecondition.
func CheckChange(c *Preconditions, etag ETag, modified time.Time, size int64) error {
	if err := checkUnchanged(c, etag, modified); err != nil {
		return err
	}
	if c.IfSize != nil && *c.IfSize != size {
		return unmet("IfSize")
	}
	if !c.IfModifiedAt.IsZero() && !modified.Truncate(time.Second).Equal(c.IfModifiedAt.Truncate(time.Second)) {
		return unmet("IfModifiedAt")
	}
	if matchesWeakly(c.IfNoneMatch, etag) {
		return unmet("If-None-Match")
	}
	return nil
}

func checkUnchanged(c *Preconditions, etag ETag, modified time.Time) error {
	if len(c.IfMatch) > 0 {
		if !matchesStrongly(c.IfMatch, etag) {
			return unmet("If-Match")
		}
	} else if !c.IfUnmodifiedSince.IsZero() && modified.Truncate(time.Second).After(c.IfUnmodifiedSince) {
		return unmet("If-Unmodified-Since")
	}
	return nil
}

func unmet(condition string) error {
	return &ConditionError{Condition: condition, Err: fserr.ErrPrecondition}
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
