package iam

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"ogw/httpapi"
	"ogw/httpapi/fair"
	"ogw/httpapi/sigv4"
	"ogw/vfs"
	"ogw/vfs/users"
)

// authenticate finds out who asks, and reads the form, which is signed.
func (q *request) authenticate() error {
	sig, err := q.verify[q.service].Parse(q.r, nil, "")
	if err != nil {
		return err
	}
	if sig == nil {
		return newError("MissingAuthenticationToken", http.StatusForbidden, "Request is missing Authentication Token")
	}
	httpapi.NoteKey(q.ctx, sig.AccessKey)
	try, err := q.cfg.Guesses.Try(fair.Subscriber(q.r.RemoteAddr), "s3", sig.AccessKey)
	if err != nil {
		return err
	}
	user, key, err := q.fs.Users().ByKey(q.ctx, sig.AccessKey)
	if errors.Is(err, vfs.ErrNoSuchUser) {
		try.Wrong()
		return newError("InvalidClientTokenId", http.StatusForbidden, "The security token included in the request is invalid.")
	}
	if err != nil {
		return err
	}
	body, err := q.body()
	if err != nil {
		return err
	}
	if err := sig.SetBody(body); err != nil {
		return err
	}
	err = q.verify[q.service].Verify(sig, key.Secret)
	if errors.Is(err, sigv4.ErrMismatch) {
		try.Wrong()
	}
	if err != nil {
		return err
	}
	try.Right()
	if q.form, err = url.ParseQuery(string(body)); err != nil {
		return newError("MalformedQueryString", http.StatusNotFound, "The query string contains a syntax error.")
	}
	q.become(user)
	return nil
}

// body reads the body.
func (q *request) body() ([]byte, error) {
	if kind, _, _ := strings.Cut(q.r.Header.Get("Content-Type"), ";"); strings.TrimSpace(kind) != "application/x-www-form-urlencoded" {
		return nil, newError("InvalidInput", http.StatusBadRequest, "The content type must be application/x-www-form-urlencoded.")
	}
	b, err := io.ReadAll(io.LimitReader(q.r.Body, maxBody+1))
	if len(b) > maxBody {
		return nil, newError("RequestEntityTooLarge", http.StatusRequestEntityTooLarge, "The request is larger than %d bytes.", maxBody)
	}
	return b, err
}

// become makes u who asks for all that follows.
func (q *request) become(u users.User) {
	q.user = u
	httpapi.NoteUser(q.ctx, u.Name, string(u.ID), u.UID)
	q.ctx = vfs.WithSubject(q.r.Context(), &vfs.Subject{User: u.ID, Name: u.Name, UID: u.UID, GID: u.GID, Admin: u.Admin,
		Call: &vfs.Call{Values: &conditionKeys{r: q.r}}})
}

// conditionKeys are what policies know of a request beside who asks. It implements
// policy.Values.
type conditionKeys struct {
	r   *http.Request
	one [1]string
}

// Value implements policy.Values.
func (k *conditionKeys) Value(key string) ([]string, bool) {
	name, ok := strings.CutPrefix(key, "aws:")
	if !ok {
		return nil, false
	}
	k.one[0], ok = httpapi.ConditionKey(k.r, name)
	return k.one[:], ok
}
