package s3

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"ogw/httpapi"
	"ogw/vfs"
)

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	q := &request{Server: s, w: w, r: r, asks: vfs.SubjectContext{Context: r.Context()}}
	q.ctx = &q.asks
	q.asks.Subject = vfs.Nobody // until it is known who the caller is
	h := w.Header()
	h["X-Amz-Request-Id"] = q.one(httpapi.RequestID(q.ctx))
	h["X-Amz-Id-2"] = hostIDs
	defer q.leave()
	if err := q.dispatch(); err != nil {
		q.fail(err)
	}
}

// dispatch finds bucket, key and operation, and runs it.
func (q *request) dispatch() error {
	var err error
	if q.q, err = parseQuery(q.r.URL.RawQuery); err != nil {
		return newError(codeInvalidURI)
	}
	q.hostBucket = q.bucketOfHost()
	ops, err := q.route()
	q.share(q)
	if err != nil {
		return err
	}
	return q.execute(ops)
}

// parseQuery spares most requests an empty map. A semicolon stands for itself (RFC 3986),
// which url.ParseQuery refuses.
func parseQuery(raw string) (url.Values, error) {
	if raw == "" {
		return nil, nil
	}
	return url.ParseQuery(strings.ReplaceAll(raw, ";", "%3B"))
}

// execute finds operation and identity, and runs it.
func (q *request) execute(ops *methodOps) error {
	if q.name.Bucket == "" && q.name.Key != "" {
		return newError(codeInvalidBucketName)
	}
	op, err := q.choose(ops)
	q.op = op
	httpapi.Note(q.ctx, op.name, "", nil)
	if q.hostBucket != "" { // else the path is it
		httpapi.NoteTarget(q.ctx, "/"+q.name.Bucket+"/"+q.name.Key, "")
	}
	if err != nil {
		return err
	}
	if op.needs != needPreflight { // which has the query of another request, signed
		if err := checkHeaderLines(q.r.Header); err != nil {
			return err
		}
		if err := q.authenticate(); err != nil {
			return err
		}
		q.noteUser()
	}
	if op.handle == nil {
		return newError(codeNotImplemented).withMessage("%s is not implemented.", op.name)
	}
	if err := q.authorize(); err != nil {
		return err
	}
	if op.needs != needForm { // a form enters when its fields were read
		if err := q.enter(); err != nil {
			return err
		}
	}
	q.charge()
	return op.handle(q)
}

// fail answers with an error, once.
func (q *request) fail(err error) {
	var se *httpapi.SendError
	if errors.As(err, &se) {
		// The header is gone: only a broken connection notifies the client.
		httpapi.Note(q.ctx, "", "", err)
		panic(http.ErrAbortHandler)
	}
	httpapi.Note(q.ctx, "", "", err)
	writeError(q.w, q.r, q.name.Bucket, q.name.Key, err)
}
