package httpapi

import (
	"context"
	"math/rand/v2"
)

// NewRequestID returns 16 hexadecimal digits, as S3's request IDs look. They
// distinguish requests in logs and are no secret.
func NewRequestID() string {
	const digits = "0123456789ABCDEF"
	var b [16]byte
	for i, n := 0, rand.Uint64(); i < len(b); i++ {
		b[i] = digits[n&15]
		n >>= 4
	}
	return string(b[:])
}

// WithRequestID returns a context that carries id.
func WithRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, recordKey{}, &Record{RequestID: id})
}

// RequestID returns the ID that Frame gave the request, or "".
func RequestID(ctx context.Context) string {
	if rec, ok := ctx.Value(recordKey{}).(*Record); ok {
		return rec.RequestID
	}
	return ""
}
