package admin

import (
	"context"
	"net/http"
)

type (
	byTokenKey    struct{}
	byStrangerKey struct{}
)

// byToken marks r as one that came with a token, and not through the socket.
func byToken(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), byTokenKey{}, true))
}

// cameByToken reports whether r is marked so.
func cameByToken(r *http.Request) bool { return r.Context().Value(byTokenKey{}) != nil }

// byStranger marks r, a probe, as one that came without the token.
func byStranger(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), byStrangerKey{}, true))
}

// cameByStranger reports whether r is marked so.
func cameByStranger(r *http.Request) bool { return r.Context().Value(byStrangerKey{}) != nil }
