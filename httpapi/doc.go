// Package httpapi holds what the HTTP doors share; the doors themselves are
// the sub-packages s3, rest and admin.
//
//	net/http ── Frame ──────────── door ── vfs
//	            request ID          │
//	            panics, one log     ├ Conditions   If-Match and its kin
//	            line a request      ├ ParseRange   Range
//	            100-continue        ├ Body         request body with an idle limit
//	                                └ Send         response body from pooled buffers
//
// # Invariants
//
// A transfer may take as long as it likes while it moves: IdleTimeout bounds
// the wait for the next bytes, never the whole. There is no limit on the
// duration of a request.
//
// Memory is bounded per request: one pooled buffer of SendBufferBytes for a
// response, nothing for a request body.
//
// Every request is logged exactly once, by Frame, after it ended.
package httpapi
