// Package httpapi holds what the HTTP doors share; the doors themselves are
// the sub-packages s3, rest and admin.
//
//	net/http ── Frame ──────────── door ── vfs
//	            request ID          │
//	            panics, one log     ├ Conditions   If-Match and its kin
//	            line a request      ├ ParseRange   Range
//	            100-continue        └ Send         response body from pooled buffers, or a pipe
//	            pace, both ways     (LazyDeadlines below net/http spares its timers,
//	                                and makes one write of a small answer)
//
// # Invariants
//
// A transfer may take as long as it likes while it moves, at MinRate or more:
// StallTime bounds the wait for its client, never the whole. There is no limit
// on the duration of a request. This holds for every body and every response,
// whatever the handler and the version of HTTP.
//
// Memory is bounded per request: one pooled buffer for a response, nothing for a
// request body. How large it may be, and how much the kernel holds of a response
// that its client does not read, is divided in Sends.
//
// A large response without TLS and HTTP/2 goes through a pipe (splices): the source
// puts pages there, which the kernel hands to the socket. What the source declines is
// read into the buffer. A pipe that holds anything after its response is closed.
//
// Every request is logged exactly once, by Frame, after it ended. What it was
// about is reported to FrameConfig.Done in the same moment: metrics and the audit
// log stand there, and know no door. A Subject never holds a secret.
package httpapi
