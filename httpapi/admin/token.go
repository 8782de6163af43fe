package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"ogw/httpapi"
	"ogw/httpapi/apierr"
)

// WithToken returns the API for requests with a bearer token only. The probes
// are open: they tell nothing but that the process lives.
func (s *Server) WithToken(token string) http.Handler {
	want := sha256.Sum256([]byte(token))
	guarded := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" && r.URL.Path != "/readyz" && !holds(r, want) {
			httpapi.Note(r.Context(), authenticate, "", nil)
			w.Header().Set("WWW-Authenticate", `Bearer realm="ogw admin"`)
			apierr.Write(w, r, apierr.ErrUnauthorized)
			return
		}
		s.router.ServeHTTP(w, r)
	})
	return s.frame(guarded)
}

// holds reports whether r carries the token with this sum. Sums are compared,
// in constant time: how long it takes tells nothing of the token.
func holds(r *http.Request, want [sha256.Size]byte) bool {
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	got := sha256.Sum256([]byte(strings.TrimSpace(given)))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(got[:], want[:]) == 1
}
