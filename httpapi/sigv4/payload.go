package sigv4

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
)

// PayloadKind is how the body of a request is signed and encoded.
type PayloadKind int

// The kinds of payload.
const (
	Unsigned              PayloadKind = iota
	Hashed                            // plain body, its SHA-256 in the header
	StreamSigned                      // aws-chunked, each chunk signed
	StreamSignedTrailer               // the same, with a signed trailer
	StreamUnsignedTrailer             // aws-chunked with a trailer, unsigned
)

// Payload is the meaning of x-amz-content-sha256.
type Payload struct {
	Kind      PayloadKind
	sum       [sha256.Size]byte
	canonical string // as in the canonical request
}

// String returns x-amz-content-sha256, as it counts for the signature.
func (p Payload) String() string {
	if p.canonical == "" {
		return "UNSIGNED-PAYLOAD"
	}
	return p.canonical
}

// Streamed reports whether the body is aws-chunked.
func (p Payload) Streamed() bool { return p.Kind >= StreamSigned }

// ParsePayload reads x-amz-content-sha256; without it the payload is unsigned.
func ParsePayload(h http.Header) (Payload, error) {
	v := field(h, "X-Amz-Content-Sha256")
	p := Payload{canonical: v}
	switch v {
	case "", "UNSIGNED-PAYLOAD":
		p.canonical = "UNSIGNED-PAYLOAD"
	case "STREAMING-AWS4-HMAC-SHA256-PAYLOAD":
		p.Kind = StreamSigned
	case "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER":
		p.Kind = StreamSignedTrailer
	case "STREAMING-UNSIGNED-PAYLOAD-TRAILER":
		p.Kind = StreamUnsignedTrailer
	default:
		if strings.HasPrefix(v, "STREAMING-") {
			return p, wrapf(ErrUnsupportedStream, "%.64s", v)
		}
		if !decodeSum(&p.sum, v) {
			return p, argument(ErrBadSHA256, "x-amz-content-sha256", v, "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, STREAMING-UNSIGNED-PAYLOAD-TRAILER, STREAMING-AWS4-HMAC-SHA256-PAYLOAD, STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER, STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD, STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD-TRAILER or a valid sha256 value.")
		}
		p.Kind = Hashed
	}
	return p, nil
}

// field is h.Get of a name in its canonical form.
func field(h http.Header, canonical string) string {
	if v := h[canonical]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// decodeSum reads a sum in hexadecimal, and reports whether it is one.
func decodeSum(sum *[sha256.Size]byte, v string) bool {
	var text [2 * sha256.Size]byte
	if len(v) != len(text) {
		return false
	}
	copy(text[:], v)
	_, err := hex.Decode(sum[:], text[:])
	return err == nil
}
