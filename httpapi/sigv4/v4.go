package sigv4

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxRegionBytes bounds the region of a scope; the longest of Amazon's has 16.
const maxRegionBytes = 64

// maxSignedHeaders bounds the list in one signature; net/http bounds the
// headers themselves by size only.
const maxSignedHeaders = 100

// parseHeader reads what follows the algorithm in an Authorization header:
//
//	Credential=KEY/yyyymmdd/region/s3/aws4_request, SignedHeaders=a;b, Signature=hex
func (v *Verifier) parseHeader(s *Signature, rest string) error {
	s.Scheme = HeaderV4
	var credential, headers, signature string
	for claim := range strings.SplitSeq(rest, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(claim), "=")
		if !ok {
			return malformedHeader("the authorization component %q is malformed.", strings.TrimSpace(claim))
		}
		switch name {
		case "Credential":
			credential = value
		case "SignedHeaders":
			headers = value
		case "Signature":
			signature = value
		default:
			return malformedHeader("the authorization component %q is malformed.", strings.TrimSpace(claim))
		}
	}
	if credential == "" || headers == "" || signature == "" {
		return malformedHeader("the authorization header requires three components: Credential, SignedHeaders, and Signature.")
	}
	if err := v.parseClaim(s, ErrMalformedHeader, credential, signature, headers); err != nil {
		return err
	}
	t, stamp, err := requestTime(s.req.Header)
	if err != nil {
		return err
	}
	if err := v.checkClock(s, ErrMalformedHeader, t, stamp); err != nil {
		return err
	}
	if v.cfg.Service == s3 && field(s.req.Header, "X-Amz-Content-Sha256") == "" {
		return ErrMissingSHA256
	}
	s.Payload, err = ParsePayload(s.req.Header)
	return err
}

// parsePresigned reads the X-Amz- parameters of a presigned URL.
func (v *Verifier) parsePresigned(s *Signature) error {
	s.Scheme = PresignedV4
	q := s.query
	for _, name := range []string{"X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires", "X-Amz-SignedHeaders", "X-Amz-Signature"} {
		if len(q[name]) != 1 || q.Get(name) == "" {
			return detailed(ErrMalformedQuery, "Query-string authentication version 4 requires the X-Amz-Algorithm, X-Amz-Credential, X-Amz-Signature, X-Amz-Date, X-Amz-SignedHeaders, and X-Amz-Expires parameters.")
		}
	}
	if q.Get("X-Amz-Algorithm") != algorithm {
		return detailed(ErrMalformedQuery, `X-Amz-Algorithm only supports "`+algorithm+`"`)
	}
	if err := v.parseClaim(s, ErrMalformedQuery, q.Get("X-Amz-Credential"), q.Get("X-Amz-Signature"), q.Get("X-Amz-SignedHeaders")); err != nil {
		return err
	}
	t, err := parseStamp(q.Get("X-Amz-Date"))
	if err != nil {
		return detailed(ErrMalformedQuery, `X-Amz-Date must be in the ISO8601 Long Format "yyyyMMdd'T'HHmmss'Z'"`)
	}
	lasts, err := lifetime(q.Get("X-Amz-Expires"))
	if err != nil {
		return err
	}
	if day := t.Format(dateFormat); day != s.date {
		return detailed(ErrMalformedQuery, fmt.Sprintf("Invalid credential date %q. This date is not the same as X-Amz-Date: %q.", s.date, day))
	}
	s.timestamp = t.Format(timeFormat)
	now := v.cfg.Now()
	if t.After(now.Add(MaxSkew)) {
		return ErrNotYetValid
	}
	if end := t.Add(lasts); lasts == 0 || now.After(end) {
		return detailed(ErrExpired, "Request has expired", "X-Amz-Expires", q.Get("X-Amz-Expires"), "Expires", isoTime(end), "ServerTime", isoTime(now))
	}
	if err := s.setStated(); err != nil {
		return err
	}
	// The hash may stand in the query or in a header; without one the
	// payload is not signed.
	h := http.Header{"X-Amz-Content-Sha256": {"UNSIGNED-PAYLOAD"}}
	if x := s.req.Header.Get("X-Amz-Content-Sha256"); x != "" {
		h = s.req.Header
	} else if s.Stated.Get("X-Amz-Content-Sha256") != "" {
		h = s.Stated
	}
	s.Payload, err = ParsePayload(h)
	return err
}

// parseClaim checks the credential scope and the shape of the rest.
func (v *Verifier) parseClaim(s *Signature, kind error, credential, signature, headers string) error {
	if err := v.parseScope(s, kind, credential, signature); err != nil {
		return err
	}
	s.headers = headers
	if strings.Count(headers, ";") >= maxSignedHeaders {
		return wrapf(kind, "more than %d signed headers", maxSignedHeaders)
	}
	if !s.signs("Host") {
		return wrapf(kind, "the host header must be signed")
	}
	var unsigned []string
	for name := range s.req.Header {
		if len(name) >= len(amzPrefix) && strings.EqualFold(name[:len(amzPrefix)], amzPrefix) && !s.signs(name) {
			unsigned = append(unsigned, strings.ToLower(name))
		}
	}
	if unsigned == nil {
		return nil
	}
	slices.Sort(unsigned)
	return detailed(ErrUnsignedHeader, "There were headers present in the request which were not signed", "HeadersNotSigned", strings.Join(unsigned, ", "))
}

// lifetime reads X-Amz-Expires.
func lifetime(v string) (time.Duration, error) {
	seconds, err := strconv.Atoi(v)
	switch {
	case err != nil:
		return 0, detailed(ErrMalformedQuery, "X-Amz-Expires should be a number")
	case seconds < 0:
		return 0, detailed(ErrMalformedQuery, "X-Amz-Expires must be non-negative")
	case seconds > int(MaxExpiry/time.Second):
		return 0, detailed(ErrMalformedQuery, "X-Amz-Expires must be less than a week (in seconds); that is, the given X-Amz-Expires must be less than 604800 seconds")
	}
	return time.Duration(seconds) * time.Second, nil
}

// isoTime is how S3's errors write times.
func isoTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// amzPrefix begins the names of headers that must be signed.
const amzPrefix = "x-amz-"

// signs reports whether a header is among those signed, whose names are in
// lower case.
func (s *Signature) signs(header string) bool {
	for name := range strings.SplitSeq(s.headers, ";") {
		if len(name) == len(header) && equalLower(name, header) {
			return true
		}
	}
	return false
}

// equalLower compares lower with s in lower case (ASCII).
func equalLower(lower, s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// parseScope reads KEY/yyyymmdd/region/s3/aws4_request. The key itself may
// hold slashes.
func (v *Verifier) parseScope(s *Signature, kind error, credential, signature string) error {
	var scope [4]string
	rest := credential
	for i := len(scope) - 1; i >= 0; i-- {
		cut := strings.LastIndexByte(rest, '/')
		if cut < 0 {
			return badCredential(kind, credential, `the Credential is mal-formed; expecting "<YOUR-AKID>/YYYYMMDD/REGION/SERVICE/aws4_request".`)
		}
		rest, scope[i] = rest[:cut], rest[cut+1:]
	}
	s.AccessKey, s.date, s.region = rest, scope[0], scope[1]
	s.scope = credential[len(rest)+1:]
	switch {
	case s.AccessKey == "":
		return badCredential(kind, credential, "a non-empty Access Key (AKID) must be provided in the credential.")
	case scope[3] != terminator:
		return badCredential(kind, credential, "incorrect terminal %q. This endpoint uses %q.", scope[3], terminator)
	case scope[2] != v.cfg.Service:
		return badCredential(kind, credential, "incorrect service %q. This endpoint belongs to %q.", scope[2], v.cfg.Service)
	case len(s.region) > maxRegionBytes:
		return badCredential(kind, credential, "the region is longer than %d bytes", maxRegionBytes)
	case v.cfg.Region != "" && s.region != v.cfg.Region:
		e := badCredential(kind, credential, "the region '%s' is wrong; expecting '%s'", s.region, v.cfg.Region)
		e.Details = append(e.Details, Detail{"Region", v.cfg.Region})
		return e
	}
	if !exactDay(s.date) {
		return badCredential(kind, credential, "incorrect date format %q. This date in the credential must be in the format \"yyyyMMdd\".", s.date)
	}
	if !decodeSum(&s.sum, signature) {
		return wrapf(ErrMismatch, "a signature has 64 hexadecimal digits")
	}
	s.mac = s.sum[:]
	return nil
}

func (v *Verifier) checkClock(s *Signature, kind error, t time.Time, stamp string) error {
	if err := v.checkSkew(t); err != nil {
		return err
	}
	s.timestamp = stamp
	if !strings.HasPrefix(s.timestamp, s.date) {
		return badCredential(kind, "", "Invalid credential date %q. This date is not the same as X-Amz-Date: %q.", s.date, s.timestamp[:len(dateFormat)])
	}
	return nil
}

// checkSkew refuses requests of clients whose clock is off.
func (v *Verifier) checkSkew(t time.Time) error {
	now := v.cfg.Now()
	if d := now.Sub(t); d <= MaxSkew && d >= -MaxSkew {
		return nil
	}
	return detailed(ErrSkewed, "The difference between the request time and the current time is too large.", "RequestTime", t.UTC().Format(timeFormat),
		"ServerTime", isoTime(now), "MaxAllowedSkewMilliseconds", strconv.FormatInt(MaxSkew.Milliseconds(), 10))
}

// requestTime returns the time of x-amz-date, or of Date, also as it is signed.
func requestTime(h http.Header) (t time.Time, stamp string, err error) {
	x := field(h, "X-Amz-Date")
	if t, ok := exactStamp(x); ok {
		return t, x, nil
	}
	if x != "" {
		t, err = httpTime(x, timeFormat)
	} else {
		t, err = httpTime(h.Get("Date"), time.RFC1123Z)
	}
	return t, t.Format(timeFormat), err
}

// httpTime reads a time as HTTP has it, or in another layout; ErrNoDate.
func httpTime(v, layout string) (time.Time, error) {
	t, err := http.ParseTime(v)
	if err != nil {
		t, err = time.Parse(layout, v)
	}
	if err != nil {
		return time.Time{}, ErrNoDate
	}
	return t.UTC(), nil
}

func (v *Verifier) verifyV4(s *Signature, secret string) error {
	id := keyID{s.AccessKey, s.date, s.region}
	key := v.keys.get(id, secret)
	known := key != nil
	if !known {
		key = newSigningKey(secret, s.date, s.region, v.cfg.Service)
	}
	s.signingKey = key
	err := s.check()
	if err == nil && !known {
		v.keys.put(id, secret, key)
	}
	if err != nil {
		return s.mismatch()
	}
	return nil
}

// mismatch returns what was signed here, by which a client finds what differs.
func (s *Signature) mismatch() error {
	text, request := s.policy, ""
	if s.Scheme != PostV4 {
		path := encodePath(s.req.URL.Path)
		text, request = string(s.stringToSign(nil, path)), string(s.canonicalRequest(nil, path))
	}
	details := []string{"AWSAccessKeyId", s.AccessKey, "StringToSign", text, "SignatureProvided", hex.EncodeToString(s.mac), "StringToSignBytes", bytesOf(text)}
	if request != "" {
		details = append(details, "CanonicalRequest", request, "CanonicalRequestBytes", bytesOf(request))
	}
	return detailed(ErrMismatch, "The request signature we calculated does not match the signature you provided. Check your key and signing method.", details...)
}

// bytesOf writes each byte of a text in hexadecimal, as S3 shows it.
func bytesOf(text string) string { return fmt.Sprintf("% x", text) }

// check compares the signature with what the signing key makes.
func (s *Signature) check() error {
	mac := s.signingKey.borrow()
	defer s.signingKey.macs.Put(mac)
	if s.Scheme == PostV4 {
		return s.compare(mac, []byte(s.policy))
	}
	// Nearly all clients sign the path as S3 writes it. Some sign the
	// characters that they sent: both say exactly the same path.
	canonicalPath := encodePath(s.req.URL.Path)
	err := s.compare(mac, s.stringToSign(mac.text[:0], canonicalPath))
	if sent := s.req.URL.EscapedPath(); err != nil && sent != canonicalPath {
		err = s.compare(mac, s.stringToSign(mac.text[:0], sent))
	}
	return err
}

func (s *Signature) compare(mac *scopedMAC, text []byte) error {
	if !mac.signed(text, s.mac) {
		return ErrMismatch
	}
	return nil
}

// stringToSign hashes the canonical request with the given path, and appends
// what is signed to b.
func (s *Signature) stringToSign(b []byte, path string) []byte {
	var room [canonicalRoom]byte
	sum := sha256.Sum256(s.canonicalRequest(room[:0], path))
	b = append(b, algorithm...)
	b = append(b, '\n')
	b = append(b, s.timestamp...)
	b = append(b, '\n')
	b = append(b, s.scope...)
	b = append(b, '\n')
	return hex.AppendEncode(b, sum[:])
}

// canonicalRoom is what the canonical request of nearly all requests takes.
const canonicalRoom = 1024

func hmacSHA256(key, text []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(text)
	return h.Sum(nil)
}

// Time returns when the request was signed, as far as the signature shows.
func (s *Signature) Time() (time.Time, bool) {
	t, err := time.Parse(timeFormat, s.timestamp)
	return t, err == nil
}
