package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"ogw/httpapi"
	"ogw/httpapi/apierr"
	"ogw/httpapi/fair"
	"ogw/vfs/clients/guess"
)

// WithToken returns the API for requests with a bearer token only. The probes
// are open: without it they show that the process lives and whether it serves, not
// why. guesses slows down wrong tokens; nil does not.
func (s *Server) WithToken(token string, guesses *guess.Guard) http.Handler {
	want := sha256.Sum256([]byte(token))
	guarded := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := authorized(r, want, guesses)
		switch {
		case err == nil:
			r = byToken(r)
		case r.URL.Path == "/healthz" || r.URL.Path == "/readyz":
			if r.Header.Get("Authorization") != "" {
				httpapi.NoteRefused(r.Context(), err)
			}
			r = byStranger(r)
		default:
			httpapi.Note(r.Context(), authenticate, "", nil)
			w.Header().Set("WWW-Authenticate", `Bearer realm="ogw admin"`)
			apierr.Write(w, r, err)
			return
		}
		s.router.ServeHTTP(w, r)
	})
	return s.frame(guarded)
}

// authorized returns why r may not pass. It must carry the token with the sum
// want; sums are compared, in constant time: how long it takes reveals nothing of
// the token.
func authorized(r *http.Request, want [sha256.Size]byte, guesses *guess.Guard) error {
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return apierr.ErrUnauthorized
	}
	got := sha256.Sum256([]byte(strings.TrimSpace(given)))
	try, err := guesses.Try(fair.Subscriber(r.RemoteAddr), "admin", string(got[:]))
	if err != nil {
		return err
	}
	if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
		try.Wrong()
		return apierr.ErrUnauthorized
	}
	try.Right()
	return nil
}
