package admin

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/julienschmidt/httprouter"

	"ogw/httpapi"
)

// described is a request or an answer that describes to the audit what an operation
// acts on, and what it makes of it; never a secret.
type described interface {
	describe() (target, detail string)
}

// tell notes for the audit what a request or an answer describes.
func tell(r *http.Request, v any) {
	if d, ok := v.(described); ok {
		target, detail := d.describe()
		httpapi.NoteTarget(r.Context(), target, detail)
	}
}

// tellPath notes what the path of a request names.
func tellPath(r *http.Request, p httprouter.Params) {
	for _, name := range []string{"name", "id"} {
		httpapi.NoteTarget(r.Context(), p.ByName(name), "")
	}
	httpapi.NoteTarget(r.Context(), "", settings("key", p.ByName("key"), "user", p.ByName("user"), p.ByName("kind"), p.ByName("to")))
}

// settings writes names and values in turn; values that are "", false or nil
// are left out.
func settings(list ...any) string {
	var out []string
	for i := 0; i+1 < len(list); i += 2 {
		switch v := list[i+1].(type) {
		case string:
			if v == "" {
				continue
			}
		case bool:
			if !v {
				continue
			}
		case []string:
			if len(v) == 0 {
				continue
			}
		case *uint32:
			if v == nil {
				continue
			}
			list[i+1] = *v
		}
		out = append(out, fmt.Sprintf("%s=%v", list[i], list[i+1]))
	}
	return strings.Join(out, " ")
}
