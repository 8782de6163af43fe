package httpapi

import (
	"iter"
	"net/http"
	"strings"
)

// MaxAskedHeaders bounds the headers that a page may ask for at once: a door looks at
// each of them, for anybody.
const MaxAskedHeaders = 100

// AskedHeaders yields the names of Access-Control-Request-Headers, the headers that a
// page wants to send, as the browser wrote them; none is checked, none is empty.
func AskedHeaders(h http.Header) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, line := range h.Values("Access-Control-Request-Headers") {
			for name := range strings.SplitSeq(line, ",") {
				if name = strings.TrimSpace(name); name != "" && !yield(name) {
					return
				}
			}
		}
	}
}
