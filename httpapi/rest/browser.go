package rest

import (
	"mime"
	"net/http"
	"strings"
)

// This door is one origin, and whoever may write below it can put a page
// there. In a browser that keeps somebody's credentials, a script of that page
// would act as them on the whole namespace. So what a browser would run is
// downloaded in place of being shown, and what it shows is shown in a sandbox:
// an origin of its own, without scripts, forms and anything loaded from here.

const (
	// objectPolicy is the sandbox of objects. Styles and pictures within an
	// object do no harm.
	objectPolicy = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; media-src data:; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	// pagePolicy is of the pages that this door makes: no scripts, nothing
	// from elsewhere, in no frame.
	pagePolicy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

// inert are the types besides pictures, sound and films that browsers show
// and run nothing of. Everything else they download anyway, or must.
var inert = map[string]bool{
	"text/plain": true, "text/csv": true, "text/markdown": true, "text/tab-separated-values": true, "application/json": true,
}

// sandbox keeps a browser from running what an object holds. The headers of
// the object are set already.
func sandbox(h http.Header) {
	h.Set("Content-Security-Policy", objectPolicy)
	if !runsNothing(h.Get("Content-Type")) {
		h.Set("Content-Disposition", attachment(h.Get("Content-Disposition")))
	}
}

// runsNothing reports whether browsers show a type and run nothing of it.
func runsNothing(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return false // what we cannot read, browsers may read as anything
	}
	family, rest, _ := strings.Cut(kind, "/")
	switch family {
	case "image", "audio", "video":
		return !strings.HasSuffix(rest, "xml") // SVG runs scripts
	}
	return inert[kind]
}

// attachment returns a Content-Disposition with the parameters of the stored
// one, such as the name of the file, that makes browsers download.
func attachment(stored string) string {
	_, params, err := mime.ParseMediaType(stored)
	if err == nil {
		if v := mime.FormatMediaType("attachment", params); v != "" {
			return v
		}
	}
	return "attachment"
}
