//nolint:staticcheck // net/http serves HTTP/2 on connections of its own only; here somebody sees the frames
package fair

import (
	"context"
	"crypto/tls"
	"net/http"
	"time"

	"golang.org/x/net/http2"
)

// HTTP2 has s count what its HTTP/2 connections keep for their clients, from
// pool. One that takes nothing, or does not end the head of a request, for
// limit is closed. s.TLSConfig is set before.
func HTTP2(s *http.Server, pool *Pool, limit time.Duration) error {
	if s.HTTP2 == nil {
		s.HTTP2 = &http.HTTP2Config{}
	}
	s.HTTP2.MaxReadFrameSize, s.HTTP2.WriteByteTimeout = maxFrame, limit
	h2 := &http2.Server{}
	if err := http2.ConfigureServer(s, h2); err != nil {
		return err
	}
	s.TLSNextProto[http2.NextProtoTLS] = func(s *http.Server, c *tls.Conn, h http.Handler) {
		k, under := Address(c.RemoteAddr().String()), below(c)
		if under != nil {
			k = under.client()
		}
		f := newFrameConn(c, pool, k, limit)
		if under != nil {
			under.head.framed(f)
		}
		defer f.end()
		ctx := context.Background()
		if b, ok := h.(interface{ BaseContext() context.Context }); ok {
			ctx = b.BaseContext() // with what ConnContext put there
		}
		h2.ServeConn(f, &http2.ServeConnOpts{Context: ctx, Handler: h, BaseConfig: s})
	}
	return nil
}
