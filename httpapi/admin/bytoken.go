package admin

import (
	"context"
	"net/http"
)

type byTokenKey struct{}

// byToken marks r as one that came with a token, and not through the socket.
func byToken(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), byTokenKey{}, true))
}

// cameByToken reports whether r is marked so.
func cameByToken(r *http.Request) bool { return r.Context().Value(byTokenKey{}) != nil }
