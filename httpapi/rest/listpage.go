package rest

import (
	"bytes"
	"encoding/json"
	"html/template"
	"net/http"
	"strconv"
	"strings"

	"ogw/httpapi/apierr"
)

// listingPage is what a browser gets: no scripts, nothing from elsewhere.
var listingPage = template.Must(template.New("listing").Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{{.Path}}</title>
<style>body{font:16px/1.5 system-ui,sans-serif;margin:2em auto;max-width:60em;padding:0 1em}
table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.2em .6em;border-bottom:1px solid #8884}
td.n{text-align:right;font-variant-numeric:tabular-nums}a{text-decoration:none}:root{color-scheme:light dark}</style>
</head><body><h1>{{.Path}}</h1>
<table><tr><th>Name</th><th>Size</th><th>Modified</th></tr>
{{if ne .Path "/"}}<tr><td><a href="../">..</a></td><td></td><td></td></tr>{{end}}
{{range .Entries}}<tr><td><a href="{{.Href}}">{{.Name}}{{if eq .Type "directory"}}/{{end}}</a></td>
<td class="n">{{with .Size}}{{.}}{{end}}</td><td>{{with .Modified}}{{.Format "2006-01-02 15:04:05"}}{{end}}</td></tr>
{{end}}</table>{{with .Next}}<p><a href="{{.}}">next page</a></p>{{end}}
</body></html>
`))

// writeListing answers with HTML for browsers, JSON for all others.
func (s *Server) writeListing(r *request, list *Listing) error {
	var body bytes.Buffer
	h := r.w.Header()
	h.Set("Cache-Control", "no-cache")
	h.Set("Vary", "Accept")
	h.Set("X-Content-Type-Options", "nosniff")
	if list.Next != "" {
		h.Set("Link", "<"+list.Next+`>; rel="next"`)
	}
	if wantsHTML(r.Header.Get("Accept")) {
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", pagePolicy)
		if err := listingPage.Execute(&body, list); err != nil {
			return err
		}
	} else {
		h.Set("Content-Type", "application/json")
		if err := json.NewEncoder(&body).Encode(list); err != nil {
			return err
		}
	}
	k, n := r.client(), int64(body.Len())
	if !s.listings.Take(k, n) {
		return apierr.ErrManyRequests
	}
	defer s.listings.Give(k, n)
	h.Set("Content-Length", strconv.Itoa(body.Len()))
	r.w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = r.w.Write(body.Bytes()) // the client may be gone
	}
	return nil
}

// wantsHTML reports whether an Accept header names HTML before JSON and before
// "anything".
func wantsHTML(accept string) bool {
	for item := range strings.SplitSeq(accept, ",") {
		kind, _, _ := strings.Cut(item, ";")
		switch strings.TrimSpace(kind) {
		case "text/html", "application/xhtml+xml":
			return true
		case "application/json", "*/*", "text/plain":
			return false
		}
	}
	return false
}
