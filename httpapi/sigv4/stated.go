package sigv4

import (
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// setStated computes Stated: what is signed and what is obeyed must be one and
// the same. A query can say less plainly than a header what it states: two names
// can be one header in two cases, a name or value can hold what looks like
// further lines of the string to sign, and a list can be split. All of that is
// refused; so is a header that says something else than the query.
func (s *Signature) setStated() error {
	v2 := s.Scheme == PresignedV2 || s.Scheme == HeaderV2
	s.Stated = http.Header{}
	if v2 {
		for name, values := range s.req.Header {
			if s.statable(name) {
				s.Stated[name] = []string{signedText(name, strings.Join(values, ","))}
			}
		}
	}
	if s.Scheme == HeaderV2 {
		return nil
	}
	seen := make(map[string]bool, len(s.query))
	for name, values := range s.query {
		if !s.statable(name) {
			continue
		}
		header := http.CanonicalHeaderKey(name)
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			return wrapf(ErrMalformedQuery, "%.64q is no name of a header", name)
		case seen[header] || len(values) != 1:
			return wrapf(ErrMalformedQuery, "%s stands there more than once", strings.ToLower(name))
		case !httpguts.ValidHeaderFieldValue(values[0]):
			return wrapf(ErrMalformedQuery, "the value of %s cannot be that of a header", strings.ToLower(name))
		}
		seen[header] = true
		text := signedText(name, values[0])
		if sent, ok := s.req.Header[header]; ok && signedText(name, strings.Join(sent, ",")) != text {
			return wrapf(ErrMalformedQuery, "the header %s says something else than the query", strings.ToLower(name))
		}
		if !v2 {
			text = values[0] // signed as it is
		}
		s.Stated[header] = []string{text}
	}
	return nil
}

// statable reports whether a header of that name may stand in the query. botocore
// puts Content-MD5 and Content-Type of Version 2 there as well.
func (s *Signature) statable(name string) bool {
	lower := strings.ToLower(name)
	return strings.HasPrefix(lower, amzPrefix) ||
		s.Scheme != PresignedV4 && (lower == "content-md5" || lower == "content-type")
}

// signedText is the value of a header as Version 2 signs it: runs of white space
// as one space, but in the two that have lines of their own.
func signedText(name, value string) string {
	if len(name) < len(amzPrefix) || !strings.EqualFold(name[:len(amzPrefix)], amzPrefix) {
		return value
	}
	return string(appendTrimmed(nil, value))
}

// checkResourceV2 refuses sub-resources that others could be signed as: their
// values are signed decoded, so that "a&acl" in one is "a" and another one.
func (s *Signature) checkResourceV2() error {
	for name, values := range s.query {
		if _, ok := slices.BinarySearch(signedV2, name); !ok {
			continue
		}
		if len(values) != 1 {
			return wrapf(ErrMalformedQuery, "%s stands there more than once", name)
		}
		for i, part := range strings.Split(values[0], "&") {
			other, _, _ := strings.Cut(part, "=")
			if _, ok := slices.BinarySearch(signedV2, other); ok && i > 0 {
				return wrapf(ErrMalformedQuery, "the value of %s looks like the parameter %s", name, other)
			}
		}
	}
	return nil
}
