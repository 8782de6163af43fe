package sigv4

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// MaxSkew is how far a client's clock may be off, S3's 15 minutes.
	MaxSkew = 15 * time.Minute
	// MaxExpiry bounds a presigned URL, S3's 7 days.
	MaxExpiry = 7 * 24 * time.Hour

	algorithm  = "AWS4-HMAC-SHA256"
	s3         = "s3"
	terminator = "aws4_request"
)

// Config of a Verifier.
type Config struct {
	// Region that scopes must name; "" takes any.
	Region string
	// Service that scopes must name; "" is S3. Those of others sign a hash of the
	// body, whatever headers say (Signature.SetBody).
	Service string
	// V2 says where Signature Version 2 is accepted.
	V2 V2
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// V2 says where Signature Version 2 is accepted.
type V2 int

// V2URLs, the default, is what clients of today sign with Version 2 unless told
// otherwise: presigned URLs and browser forms, which are sent as they were made
// and end when they say. What Version 2 does not sign of a request (region,
// headers besides x-amz-, the body's hash) matters most where a client signs each
// request anew.
const (
	V2URLs V2 = iota
	V2All     // Authorization headers, too
	V2None
)

// Verifier checks signatures. It is safe for concurrent use.
type Verifier struct {
	cfg  Config
	keys keyCache
}

// New returns a Verifier.
func New(c Config) *Verifier {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Service == "" {
		c.Service = s3
	}
	return &Verifier{cfg: c}
}

// Scheme is how a request is signed.
type Scheme string

// The schemes.
const (
	HeaderV4    Scheme = "header-v4"
	PresignedV4 Scheme = "presigned-v4"
	PostV4      Scheme = "post-v4"
	HeaderV2    Scheme = "header-v2"
	PresignedV2 Scheme = "presigned-v2"
	PostV2      Scheme = "post-v2"
)

// Signature is the claim of a request; it proves nothing before Verify.
type Signature struct {
	AccessKey string
	// Token is the session token that goes with the key, "" for none.
	Token   string
	Scheme  Scheme
	Payload Payload
	// Stated are the headers that stand in the query of a presigned URL, those
	// of the authentication itself included, each with one value. With Version 2
	// they are all that is signed as headers, Content-Type and Content-MD5 too,
	// wherever they stand; their values are those signed.
	Stated http.Header

	req        *http.Request
	query      url.Values
	hostBucket string

	mac        []byte            // the signature itself
	sum        [sha256.Size]byte // backs that of Version 4
	date       string            // scope date, yyyymmdd
	region     string
	scope      string      // date/region/s3/aws4_request
	timestamp  string      // as in the string to sign
	headers    string      // names of the signed ones, as SignedHeaders
	policy     string      // of a form, base64
	signingKey *signingKey // after Verify, for chunks
}

// Parse reads the signature of r, whose parsed query is q, and checks all
// that needs no secret: form, scope, clock and expiry. hostBucket is the
// bucket that the Host header names, if any (Version 2 signs it). Parse
// returns nil, nil for an anonymous request.
func (v *Verifier) Parse(r *http.Request, q url.Values, hostBucket string) (*Signature, error) {
	s := &Signature{req: r, query: q, hostBucket: hostBucket}
	auth := field(r.Header, "Authorization")
	inQuery := q.Has("X-Amz-Signature") || q.Has("X-Amz-Algorithm") || q.Has("X-Amz-Credential")
	inQueryV2 := q.Has("Signature") && q.Has("AWSAccessKeyId")
	if auth != "" && (inQuery || inQueryV2) {
		return nil, argument(ErrManyAuth, "Authorization", auth, "Only one auth mechanism allowed; only the X-Amz-Algorithm query parameter, Signature query string parameter or the Authorization header should be specified")
	}
	var err error
	switch {
	case inQuery:
		err = v.parsePresigned(s)
	case inQueryV2:
		err = v.parsePresignedV2(s)
	case auth == "" && (r.Header.Get(tokenHeader) != "" || q.Has(tokenHeader)):
		err = ErrSessionToken
	case auth == "":
		return nil, nil
	case strings.HasPrefix(auth, algorithm):
		err = v.parseHeader(s, auth[len(algorithm):])
	case strings.HasPrefix(auth, "AWS "):
		err = v.parseHeaderV2(s, auth[len("AWS "):])
	default:
		err = argument(ErrUnknownAuth, "Authorization", auth, "Unsupported Authorization Type")
	}
	if err == nil {
		err = s.setToken()
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// tokenHeader brings a session token, as a header, a parameter or a field.
const tokenHeader = "X-Amz-Security-Token"

// setToken finds the session token. Headers of its name are signed, and so is the query.
func (s *Signature) setToken() error {
	sent := s.req.Header[tokenHeader]
	switch {
	case len(sent) > 1, s.Stated == nil && s.query.Has(tokenHeader):
		return ErrSessionToken
	case s.Stated.Get(tokenHeader) != "":
		s.Token = s.Stated.Get(tokenHeader)
	case len(sent) == 1:
		s.Token = sent[0]
	}
	return nil
}

// SetBody sets the body that the signature is for; ErrSHA256Mismatch if a header
// states another. For services other than S3 it comes before Verify.
func (s *Signature) SetBody(body []byte) error {
	sum := sha256.Sum256(body)
	if s.Payload.Kind == Hashed && s.Payload.sum != sum {
		return ErrSHA256Mismatch
	}
	s.Payload = Payload{Kind: Hashed, sum: sum, canonical: hex.EncodeToString(sum[:])}
	return nil
}

// Verify checks the signature against the secret of its access key.
func (v *Verifier) Verify(s *Signature, secret string) error {
	switch s.Scheme {
	case HeaderV4, PresignedV4, PostV4:
		return v.verifyV4(s, secret)
	case HeaderV2, PresignedV2, PostV2:
		if !hmac.Equal(s.mac, macV2(secret, s.stringToSignV2())) {
			return ErrMismatch
		}
		return nil
	}
	return ErrUnsupportedAuth
}
