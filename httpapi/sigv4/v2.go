package sigv4

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"net/http"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

// signedV2 are the query parameters that Version 2 signs, sorted: all sub-resources that
// are served, the younger ones that few clients sign included. Otherwise a URL for a bucket
// would be good for them, too.
var signedV2 = []string{
	"accelerate", "acl", "analytics", "attributes", "cors", "delete", "encryption", "inventory", "legal-hold", "lifecycle",
	"location", "logging", "metrics", "notification", "object-lock", "ownershipControls", "partNumber", "policy",
	"policyStatus", "publicAccessBlock", "renameObject", "replication", "requestPayment", "response-cache-control",
	"response-content-disposition", "response-content-encoding", "response-content-language", "response-content-type",
	"response-expires", "restore", "retention", "select", "select-type", "tagging", "torrent", "uploadId", "uploads",
	"versionId", "versioning", "versions", "website",
}

// parseHeaderV2 reads "KEY:base64" of an Authorization header "AWS ...".
func (v *Verifier) parseHeaderV2(s *Signature, rest string) error {
	s.Scheme = HeaderV2
	if v.cfg.V2 != V2All {
		return ErrUnsupportedAuth
	}
	key, mac, ok := strings.Cut(strings.TrimSpace(rest), ":")
	if !ok || key == "" {
		return argument(ErrUnknownAuth, "Authorization", s.req.Header.Get("Authorization"), "AWS authorization header is invalid.  Expected AwsAccessKeyId:signature")
	}
	if err := s.setV2(key, mac); err != nil {
		return err
	}
	t, _, err := requestTime(s.req.Header)
	if err != nil {
		return err
	}
	if err := v.checkSkew(t); err != nil {
		return err
	}
	if s.req.Header.Get("X-Amz-Date") == "" {
		s.timestamp = s.req.Header.Get("Date")
	}
	return s.stateV2()
}

// parsePresignedV2 reads AWSAccessKeyId, Expires and Signature.
func (v *Verifier) parsePresignedV2(s *Signature) error {
	s.Scheme = PresignedV2
	if v.cfg.V2 == V2None {
		return ErrUnsupportedAuth
	}
	if err := s.setV2(s.query.Get("AWSAccessKeyId"), s.query.Get("Signature")); err != nil {
		return err
	}
	s.timestamp = s.query.Get("Expires")
	expires, err := strconv.ParseInt(s.timestamp, 10, 64)
	if err != nil {
		return wrapf(ErrMalformedQuery, "Expires must be seconds since 1970")
	}
	if now, end := v.cfg.Now(), time.Unix(expires, 0); now.After(end) {
		return detailed(ErrExpired, "Request has expired", "Expires", isoTime(end), "ServerTime", isoTime(now))
	}
	return s.stateV2()
}

// stateV2 works out what a request states, once its signature was read.
func (s *Signature) stateV2() error {
	if err := s.setStated(); err != nil {
		return err
	}
	if err := s.checkResourceV2(); err != nil {
		return err
	}
	var err error
	s.Payload, err = payloadV2(s.Stated)
	return err
}

// payloadV2: Version 2 signs no payload, but what a client says of it counts.
func payloadV2(h http.Header) (Payload, error) {
	if h.Get("X-Amz-Content-Sha256") == "" {
		return Payload{Kind: Unsigned}, nil
	}
	p, err := ParsePayload(h)
	if err == nil && (p.Kind == StreamSigned || p.Kind == StreamSignedTrailer) {
		return p, wrapf(ErrBadSHA256, "signed chunks need Signature Version 4")
	}
	return p, err
}

func (s *Signature) setV2(key, mac string) error {
	b, err := base64.StdEncoding.DecodeString(mac)
	if err != nil || len(b) != sha1.Size {
		return wrapf(ErrMismatch, "a Version 2 signature is 20 bytes in base64")
	}
	s.AccessKey, s.mac = key, b
	return nil
}

func (s *Signature) stringToSignV2() string {
	if s.Scheme == PostV2 {
		return s.policy
	}
	h := s.Stated
	var b strings.Builder
	for _, part := range []string{s.req.Method, h.Get("Content-Md5"), h.Get("Content-Type"), s.timestamp} {
		b.WriteString(part)
		b.WriteByte('\n')
	}
	var names []string
	for name := range h {
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "x-amz-") {
			names = append(names, lower)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		b.WriteString(name)
		b.WriteByte(':')
		b.WriteString(h.Get(name))
		b.WriteByte('\n')
	}
	s.writeResourceV2(&b)
	return b.String()
}

// writeResourceV2 writes the path as sent and the sub-resources, decoded.
func (s *Signature) writeResourceV2(b *strings.Builder) {
	if s.hostBucket != "" {
		b.WriteByte('/')
		b.WriteString(s.hostBucket)
	}
	b.WriteString(s.req.URL.EscapedPath())
	var pairs []string
	for name, values := range s.query {
		if _, ok := slices.BinarySearch(signedV2, name); !ok {
			continue
		}
		for _, v := range values {
			if v != "" {
				pairs = append(pairs, name+"="+v)
			} else {
				pairs = append(pairs, name)
			}
		}
	}
	sort.Slice(pairs, func(i, j int) bool { return lessPair(pairs[i], pairs[j]) })
	for i, p := range pairs {
		if i == 0 {
			b.WriteByte('?')
		} else {
			b.WriteByte('&')
		}
		b.WriteString(p)
	}
}

func macV2(secret, text string) []byte {
	h := hmac.New(sha1.New, []byte(secret))
	h.Write([]byte(text))
	return h.Sum(nil)
}
