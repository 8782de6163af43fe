package httpapi

import (
	"net/http"
	"strings"
	"time"
)

// Outcome is what the conditions of a request decide.
type Outcome int

const (
	// Proceed: serve the request.
	Proceed Outcome = iota
	// NotModified: answer 304 to GET and HEAD.
	NotModified
	// PreconditionFailed: answer 412.
	PreconditionFailed
)

// Conditions are the parsed conditional headers of a request (RFC 9110,
// section 13.1). The zero value asks nothing.
type Conditions struct {
	IfMatch           ETags
	IfNoneMatch       ETags
	IfModifiedSince   time.Time // zero: not given
	IfUnmodifiedSince time.Time // zero: not given
}

// ETags is a list of entity tags as in If-Match.
type ETags struct {
	Any  bool     // "*"
	Tags []string // opaque tags without quotes and without W/
	weak []bool   // parallel to Tags
}

// Given reports whether the header was there.
func (e ETags) Given() bool { return e.Any || len(e.Tags) > 0 }

// ParseConditions reads the four conditional headers of h, each with prefix
// before its name (S3 copies use "X-Amz-Copy-Source-"). Dates that do not
// parse are ignored, as RFC 9110 asks.
func ParseConditions(h http.Header, prefix string) Conditions {
	// The names are canonical: nothing needs to be looked at letter by letter.
	return Conditions{
		IfMatch:           parseIfMatch(h[prefix+"If-Match"]),
		IfNoneMatch:       parseETags(h[prefix+"If-None-Match"]),
		IfModifiedSince:   parseDate(Field(h, prefix+"If-Modified-Since")),
		IfUnmodifiedSince: parseDate(Field(h, prefix+"If-Unmodified-Since")),
	}
}

// CheckRead decides a GET or HEAD of an existing representation, in the order
// of RFC 9110, section 13.2.2. etag has no quotes.
func (c Conditions) CheckRead(etag string, modified time.Time) Outcome {
	modified = modified.Truncate(time.Second) // the resolution of HTTP dates
	if c.IfMatch.Given() {
		if !c.IfMatch.Matches(etag, false) {
			return PreconditionFailed
		}
	} else if !c.IfUnmodifiedSince.IsZero() && modified.After(c.IfUnmodifiedSince) {
		return PreconditionFailed
	}
	if c.IfNoneMatch.Given() {
		if c.IfNoneMatch.Matches(etag, true) {
			return NotModified
		}
	} else if !c.IfModifiedSince.IsZero() && !modified.After(c.IfModifiedSince) {
		return NotModified
	}
	return Proceed
}

// CheckWrite decides a method that changes the resource. exists reports whether
// there is a representation; without one, etag and modified mean nothing.
func (c Conditions) CheckWrite(exists bool, etag string, modified time.Time) Outcome {
	modified = modified.Truncate(time.Second)
	if c.IfMatch.Given() {
		if !exists || !c.IfMatch.Matches(etag, false) {
			return PreconditionFailed
		}
	} else if !c.IfUnmodifiedSince.IsZero() && exists && modified.After(c.IfUnmodifiedSince) {
		return PreconditionFailed
	}
	if c.IfNoneMatch.Given() && exists && c.IfNoneMatch.Matches(etag, true) {
		return PreconditionFailed
	}
	return Proceed
}

// Matches compares etag (without quotes, strong) with the list, weakly or
// strongly (RFC 9110, section 8.8.3.2).
func (e ETags) Matches(etag string, weakly bool) bool {
	if e.Any {
		return true
	}
	for i, t := range e.Tags {
		if t == etag && (weakly || !e.weak[i]) {
			return true
		}
	}
	return false
}

// IfRangeHolds reports whether the Range header of a request counts: without
// If-Range it does, else only if the validator matches (RFC 9110, section
// 13.1.5).
func IfRangeHolds(h http.Header, etag string, modified time.Time) bool {
	v := strings.TrimSpace(h.Get("If-Range"))
	if v == "" {
		return true
	}
	if strings.HasPrefix(v, `"`) {
		return strings.Trim(v, `"`) == etag
	}
	if strings.HasPrefix(v, "W/") {
		return false
	}
	t := parseDate(v)
	return !t.IsZero() && modified.Truncate(time.Second).Equal(t)
}

// parseIfMatch is parseETags, where a list that names nothing, such as ",", is met by nothing:
// to have asked for a certain content and change any other is worse than to be refused.
func parseIfMatch(values []string) ETags {
	e := parseETags(values)
	if !e.Given() && strings.Join(values, ",") != "" {
		return ETags{Tags: []string{""}, weak: []bool{true}}
	}
	return e
}

// parseETags is lenient as S3 clients need: tags without quotes, and quotes
// as XML entities, are taken.
func parseETags(values []string) ETags {
	var out ETags
	for rest := strings.Join(values, ","); rest != ""; {
		rest = strings.TrimLeft(rest, " \t,")
		weak := strings.HasPrefix(rest, "W/")
		if weak {
			rest = rest[2:]
		}
		var tag string
		if strings.HasPrefix(rest, `"`) {
			tag, rest, _ = strings.Cut(rest[1:], `"`)
		} else {
			tag, rest, _ = strings.Cut(rest, ",")
			tag = strings.TrimSpace(tag)
			if tag == "" {
				continue
			}
			if tag == "*" && !weak {
				out.Any = true
				continue
			}
		}
		out.Tags = append(out.Tags, tag)
		out.weak = append(out.weak, weak)
	}
	return out
}

// Field is h.Get of a name in its canonical form, which Get would go through letter by
// letter: a request is asked for a dozen that it seldom has.
func Field(h http.Header, canonical string) string { return first(h[canonical]) }

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

func parseDate(s string) time.Time {
	if s == "" {
		return time.Time{}
	}
	t, err := http.ParseTime(s)
	if err != nil {
		return time.Time{}
	}
	return t
}
