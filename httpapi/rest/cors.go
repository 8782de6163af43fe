package rest

import (
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"ogw/httpapi"
)

// AnyOrigin, among Config.Origins, stands for every origin.
const AnyOrigin = "*"

const (
	// corsMaxAge is how long a browser goes by an answer, in seconds.
	corsMaxAge = "600"
	// exposed are the headers of answers that pages may read, beside those that the
	// Fetch Standard always lets them.
	exposed = "Accept-Ranges, Content-Disposition, Content-Encoding, Content-Range, ETag, Link, Location, Retry-After, X-Missing-Meta, X-Request-Id"
	// originVary is what answers depend on as soon as pages of any other origin may
	// read some.
	originVary = "Origin, Access-Control-Request-Method, Access-Control-Request-Headers"
)

// cors lets pages of other origins use the door (Fetch Standard, "CORS protocol").
type cors struct {
	origins []string // as browsers send them
	// credentials reports whether browsers may send along what they keep: a user's name and
	// password, never to AnyOrigin.
	credentials bool
}

// share lets the page that asks read the answer, errors too.
func (c *cors) share(w http.ResponseWriter, r *http.Request) (shared bool) {
	if len(c.origins) == 0 {
		return false
	}
	h := w.Header()
	h.Add("Vary", originVary)
	origin := r.Header.Get("Origin")
	switch {
	case origin == "":
		return false
	case slices.Contains(c.origins, AnyOrigin):
		h.Set("Access-Control-Allow-Origin", AnyOrigin)
	case slices.Contains(c.origins, origin):
		h.Set("Access-Control-Allow-Origin", origin)
		if c.credentials {
			h.Set("Access-Control-Allow-Credentials", "true")
		}
	default:
		return false
	}
	h.Set("Access-Control-Expose-Headers", exposed)
	return true
}

// preflight adds what a page whose origin share allowed may ask for.
func (c *cors) preflight(w http.ResponseWriter, r *http.Request, methods string) {
	if r.Header.Get("Access-Control-Request-Method") == "" {
		return
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", methods)
	h.Set("Access-Control-Max-Age", corsMaxAge)
	var asked []string
	for name := range httpapi.AskedHeaders(r.Header) {
		if httpguts.ValidHeaderFieldName(name) && len(asked) < httpapi.MaxAskedHeaders {
			asked = append(asked, name)
		}
	}
	if len(asked) > 0 {
		h.Set("Access-Control-Allow-Headers", strings.Join(asked, ", "))
	}
}
