package rest

import (
	"net/http"
	"strings"
	"testing"
)

func TestSandbox(t *testing.T) {
	for _, c := range []struct{ kind, disposition, want string }{
		{"text/plain; charset=utf-8", "", ""},
		{"image/png", "inline; filename=a.png", "inline; filename=a.png"},
		{"VIDEO/MP4", "", ""},
		{"application/json", "", ""},
		{"text/html", "", "attachment"},
		{"Text/HTML; charset=utf-8", "inline", "attachment"},
		{"text/html", `inline; filename="a b.html"`, `attachment; filename="a b.html"`},
		{"text/html", "inline; filename*=utf-8''%c3%a4.html", "attachment; filename*=utf-8''%C3%A4.html"},
		{"text/html", `attachment; filename=a"b`, "attachment"},
		{"text/html", "form-data; x", "attachment"},
		{"image/svg+xml", "", "attachment"},
		{"application/xhtml+xml", "", "attachment"},
		{"text/xml", "", "attachment"},
		{"text/javascript", "", "attachment"},
		{"application/pdf", "", "attachment"},
		{"multipart/x-mixed-replace; boundary=x", "", "attachment"},
		{"message/rfc822", "", "attachment"},
		{"text/html,text/plain", "", "attachment"},
		{"nonsense", "", "attachment"},
		{"", "", "attachment"},
	} {
		h := http.Header{"Content-Type": {c.kind}}
		if c.disposition != "" {
			h.Set("Content-Disposition", c.disposition)
		}
		sandbox(h)
		if got := h.Get("Content-Disposition"); got != c.want || !strings.HasPrefix(h.Get("Content-Security-Policy"), "sandbox;") {
			t.Errorf("%q, %q: %q; want %q", c.kind, c.disposition, got, c.want)
		}
	}
}
