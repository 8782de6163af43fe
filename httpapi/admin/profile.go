package admin

import (
	"net/http"
	"net/http/pprof"
	"strings"

	"github.com/julienschmidt/httprouter"

	"ogw/httpapi"
)

// profilePath is where the profiles of package runtime/pprof are served:
//
//	curl --unix-socket DIR/admin.sock 'http://ogw/debug/pprof/profile?seconds=10' >cpu.prof
const profilePath = "/debug/pprof/"

// profile answers profilePath, for operators only: a profile costs time, and
// a heap dump shows names.
func profile(w http.ResponseWriter, r *http.Request, p httprouter.Params) {
	httpapi.Note(r.Context(), profiling, operator, nil)
	switch strings.TrimPrefix(p.ByName("name"), "/") {
	case "profile":
		pprof.Profile(w, r)
	case "trace":
		pprof.Trace(w, r)
	case "cmdline":
		pprof.Cmdline(w, r)
	case "symbol":
		pprof.Symbol(w, r)
	default:
		pprof.Index(w, r)
	}
}
