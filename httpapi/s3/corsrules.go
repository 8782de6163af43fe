package s3

import (
	"encoding/xml"
	"net/http"
	"slices"
	"strings"
)

// corsConfig is the CORSConfiguration of a bucket, as clients send it and as it is
// kept (in JSON).
type corsConfig struct {
	XMLName xml.Name   `xml:"CORSConfiguration" json:"-"`
	Rules   []corsRule `xml:"CORSRule"`
}

// corsRule says which pages of other origins may do what.
type corsRule struct {
	ID      string   `xml:"ID" json:",omitempty"`
	Origins []string `xml:"AllowedOrigin"`
	Methods []string `xml:"AllowedMethod"`
	Headers []string `xml:"AllowedHeader" json:",omitempty"`
	Expose  []string `xml:"ExposeHeader" json:",omitempty"`
	MaxAge  *uint32  `xml:"MaxAgeSeconds" json:",omitempty"`

	patterns []string // Headers in lower case, of rules that are asked
}

// corsMethods are the methods that a rule may allow.
var corsMethods = []string{http.MethodGet, http.MethodPut, http.MethodPost, http.MethodDelete, http.MethodHead}

func (c *corsConfig) check() error {
	switch {
	case len(c.Rules) == 0:
		return newError(codeMalformedXML)
	case len(c.Rules) > maxCORSRules:
		return newError(codeInvalidRequest).withMessage("The number of CORS rules should not exceed allowed limit of %d rules.", maxCORSRules)
	}
	for i := range c.Rules {
		if err := c.Rules[i].check(); err != nil {
			return err
		}
	}
	return nil
}

func (r *corsRule) check() error {
	if len(r.Origins) == 0 || len(r.Methods) == 0 || len(r.ID) > maxCORSIDBytes {
		return newError(codeMalformedXML)
	}
	for _, m := range r.Methods {
		if !slices.Contains(corsMethods, m) {
			return newError(codeInvalidRequest).withMessage("Found unsupported HTTP method in CORS config. Unsupported method is %s", m)
		}
	}
	for _, list := range []struct {
		name   string
		values []string
	}{{"AllowedOrigin", r.Origins}, {"AllowedHeader", r.Headers}, {"ExposeHeader", r.Expose}} {
		for _, v := range list.values {
			if err := checkCORSValue(list.name, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkCORSValue refuses what could not stand in a header, or says more than one
// wildcard.
func checkCORSValue(element, v string) error {
	stars := strings.Count(v, "*")
	switch {
	case strings.ContainsFunc(v, func(c rune) bool { return c <= ' ' || c > '~' || c == ',' }):
		return newError(codeInvalidRequest).withMessage("%s \"%s\" contains invalid character.", element, v)
	case element == "ExposeHeader" && stars > 0:
		return newError(codeInvalidRequest).withMessage("ExposeHeader \"%s\" contains wildcard. We currently do not support wildcard for ExposeHeader.", v)
	case stars > 1:
		return newError(codeInvalidRequest).withMessage("%s \"%s\" can not have more than one wildcard.", element, v)
	}
	return nil
}

// match returns the first rule for a request, whose headers are in lower case, and
// whether it is for every origin.
func (c *corsConfig) match(origin, method string, headers []string) (rule *corsRule, any bool) {
	for i := range c.Rules {
		r := &c.Rules[i]
		if !slices.Contains(r.Methods, method) || !r.allows(headers) {
			continue
		}
		for _, pattern := range r.Origins {
			if matchesStar(pattern, origin) {
				return r, pattern == "*"
			}
		}
	}
	return nil, false
}

// allows reports whether all headers of a request, in lower case, are allowed.
func (r *corsRule) allows(headers []string) bool {
	if len(headers) == 0 {
		return true
	}
	for _, h := range headers {
		if !slices.ContainsFunc(r.patterns, func(pattern string) bool { return matchesStar(pattern, h) }) {
			return false
		}
	}
	return true
}

// matchesStar compares with a pattern in which one * stands for anything.
func matchesStar(pattern, s string) bool {
	before, after, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == s
	}
	return len(s) >= len(before)+len(after) && strings.HasPrefix(s, before) && strings.HasSuffix(s, after)
}
