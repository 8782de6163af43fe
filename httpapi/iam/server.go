package iam

import (
	"bytes"
	"encoding/xml"
	"net/http"
	"slices"
	"strings"
	"time"

	"ogw/httpapi"
	"ogw/httpapi/fair"
	"ogw/vfs"
)

const (
	// maxBody bounds a request: the longest text of a policy that IAM takes, 128
	// KiB, each byte as three.
	maxBody = 512 << 10
	// maxBodies bounds the signed bodies that are read or worked on at a time: 32 MiB.
	maxBodies = 64
	// maxStrangers bounds the requests that nobody signed and that are read or worked
	// on at a time, so that they leave maxBodies alone: 5 MiB.
	maxStrangers = 64
	// strangerTime bounds how long such a body may take to come: on a line of 64
	// kbit/s. So it does with a signed one, which is verified with its signature,
	// from an address that has not proved to have the access key.
	strangerTime = 10 * time.Second
	// maxAnonymousBody bounds a request that nobody signed: a web identity of 20,000
	// bytes and a session policy, each byte as three.
	maxAnonymousBody = 72 << 10
)

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if serviceOf(r) == "" {
		s.cfg.Next.ServeHTTP(w, r)
		return
	}
	s.handler.ServeHTTP(w, r)
}

// serviceOf is the service that a request is signed for, "" for one of another door.
func serviceOf(r *http.Request) string {
	if r.Method != http.MethodPost || r.URL.Path != "/" {
		return ""
	}
	auth := r.Header.Get("Authorization")
	if auth == "" && isForm(r) && r.URL.RawQuery == "" {
		// A web identity, which nobody signs for. All of it is in the body; with a
		// query, it is for the bucket that the host names (DeleteObjects), by a URL
		// that was signed or by nobody. Clients send that as a form, if nobody says
		// what it is.
		return "sts"
	}
	for service := range namespaces {
		if strings.Contains(auth, "/"+service+"/aws4_request") {
			return service
		}
	}
	return ""
}

// isForm reports whether the body is a form as the query protocol sends it; S3's forms
// are of another kind.
func isForm(r *http.Request) bool {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	return strings.TrimSpace(kind) == "application/x-www-form-urlencoded"
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	q := &request{Server: s, r: r, ctx: r.Context(), service: serviceOf(r)}
	// Nobody is asked for after this but the caller; so far that is nobody.
	q.ctx = vfs.WithSubject(q.ctx, vfs.Nobody)
	body, err := q.answer()
	if err != nil {
		httpapi.Note(q.ctx, "", "", err)
		writeError(w, r, q.service, err)
		return
	}
	send(w, http.StatusOK, body)
}

// answer runs the request and returns the document that answers it.
func (q *request) answer() ([]byte, error) {
	key, places := fair.Address(q.r.RemoteAddr), q.bodies
	if q.r.Header.Get("Authorization") == "" {
		places = q.strangers
	}
	if !places.Take(key, 1) {
		return nil, errThrottling
	}
	defer places.Give(key, 1)
	if err := q.authenticate(); err != nil {
		return nil, err
	}
	action := q.form.Get("Action")
	op, ok := q.operations[q.service][action]
	if slices.Contains(refused[q.service], action) {
		return nil, newError("NotImplemented", http.StatusNotImplemented, "The operation %s is not implemented here.", action)
	}
	if !ok {
		return nil, newError("InvalidAction", http.StatusBadRequest, "Could not find operation %.64s for version %.16s", action, q.form.Get("Version"))
	}
	if q.session != nil && q.session.Federated() && action != "GetCallerIdentity" {
		return nil, newError("AccessDenied", http.StatusForbidden, "Cannot call %s with the credentials of a federated user", action)
	}
	httpapi.Note(q.ctx, action, "", nil)
	httpapi.NoteTarget(q.ctx, q.target(), "")
	result, err := op(q)
	if err != nil {
		return nil, err
	}
	return document(q.ctx, q.service, action, result)
}

// target is what an operation acts on, for the audit.
func (q *request) target() string {
	for _, name := range []string{"UserName", "GroupName", "RoleName", "RoleArn", "OpenIDConnectProviderArn", "Url", "PolicyArn", "PolicyName"} {
		if v := q.form.Get(name); v != "" {
			return v
		}
	}
	return ""
}

type errorDocument struct {
	XMLName   xml.Name
	Type      string `xml:"Error>Type"`
	Code      string `xml:"Error>Code"`
	Message   string `xml:"Error>Message"`
	RequestID string `xml:"RequestId"`
}

// writeError answers with the error's XML.
func writeError(w http.ResponseWriter, r *http.Request, service string, err error) {
	e := toAPI(err)
	d := errorDocument{xml.Name{Space: namespaces[service], Local: "ErrorResponse"}, "Sender", e.code, e.message, httpapi.RequestID(r.Context())}
	if e.status >= http.StatusInternalServerError {
		d.Type = "Receiver"
	}
	var b bytes.Buffer
	if xml.NewEncoder(&b).Encode(d) != nil {
		b.Reset()
	}
	send(w, e.status, b.Bytes())
}
