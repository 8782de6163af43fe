package apierr

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"ogw/httpapi"
	"ogw/vfs/clients/guess"
)

// retryAfterSeconds is when clients are to try again after a 503: conflicts
// and short outages are over by then.
const retryAfterSeconds = 1

// Body is the JSON form of an error.
type Body struct {
	Error Detail `json:"error"`
}

// Detail of an error.
type Detail struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Request string `json:"request,omitempty"`
}

// Write answers a request with err and notes it for the log. It returns the
// status sent.
func Write(w http.ResponseWriter, r *http.Request, err error) int {
	e := Of(err)
	message := err.Error()
	if e.Status >= 500 && e.Status != http.StatusNotImplemented {
		message = e.Err.Error()
	}
	return write(w, r, err, e, message)
}

// WriteDetailed is Write for operators, who may see the details of faults.
func WriteDetailed(w http.ResponseWriter, r *http.Request, err error) int {
	return write(w, r, err, Of(err), err.Error())
}

func write(w http.ResponseWriter, r *http.Request, err error, e Entry, message string) int {
	httpapi.Note(r.Context(), "", "", err)
	h := w.Header()
	if e.Status == http.StatusNotModified {
		w.WriteHeader(e.Status)
		return e.Status
	}
	for _, name := range []string{"Content-Encoding", "Content-Disposition", "Content-Language", "Cache-Control",
		"Expires", "Etag", "Last-Modified", "Content-Length"} {
		h.Del(name) // they would describe the object, not this answer
	}
	if e.Status == http.StatusServiceUnavailable {
		h.Set("Retry-After", strconv.Itoa(retryAfterSeconds))
	}
	if t := (*guess.Throttled)(nil); errors.As(err, &t) {
		h.Set("Retry-After", strconv.Itoa(t.Seconds()))
	}
	d := Detail{Code: e.Code, Message: message, Request: httpapi.RequestID(r.Context())}
	h.Set("X-Content-Type-Options", "nosniff")
	body, kind := d.encode(r.Header.Get("Accept"))
	h.Set("Content-Type", kind)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(e.Status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // the client may be gone; nothing is left to report
	}
	return e.Status
}

func (d Detail) encode(accept string) (body []byte, contentType string) {
	if WantsText(accept) {
		text := d.Message
		if d.Request != "" {
			text += " (request " + d.Request + ")"
		}
		return []byte(text + "\n"), "text/plain; charset=utf-8"
	}
	body, _ = json.Marshal(Body{d}) // strings always encode
	return append(body, '\n'), "application/json"
}

// WantsText reports whether an Accept header names a text type before JSON and
// before "anything".
func WantsText(accept string) bool {
	for item := range strings.SplitSeq(accept, ",") {
		kind, _, _ := strings.Cut(item, ";")
		switch kind = strings.TrimSpace(kind); {
		case kind == "application/json" || kind == "*/*":
			return false
		case strings.HasPrefix(kind, "text/"):
			return true
		}
	}
	return false
}
