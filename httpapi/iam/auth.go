package iam

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"ogw/httpapi"
	"ogw/httpapi/fair"
	"ogw/httpapi/sigv4"
	"ogw/vfs"
	"ogw/vfs/iam"
	"ogw/vfs/users"
)

// authenticate finds out who the caller is, and reads the form, which is signed.
func (q *request) authenticate() error {
	sig, err := q.verify[q.service].Parse(q.r, nil, "")
	if err != nil {
		return err
	}
	if sig == nil {
		return q.anonymous()
	}
	httpapi.NoteKey(q.ctx, sig.AccessKey)
	try, err := q.cfg.Guesses.Try(fair.Subscriber(q.r.RemoteAddr), "s3", sig.AccessKey)
	if err != nil {
		return err
	}
	user, secret, session, err := q.fs.IAM().Credential(q.ctx, sig.AccessKey, sig.Token)
	if errors.Is(err, iam.ErrBadToken) {
		try.Wrong()
	}
	if errors.Is(err, vfs.ErrNoSuchUser) {
		try.Wrong()
		return newError("InvalidClientTokenId", http.StatusForbidden, "The security token included in the request is invalid.")
	}
	if err != nil {
		return err
	}
	if err := q.acceptable(maxBody); err != nil {
		return err // of which nothing is read
	}
	if !try.Proven() {
		// Anybody may have seen the ID of the access key.
		key := fair.User(sig.AccessKey)
		if !q.unproven.Take(key, 1) {
			return errThrottling
		}
		defer q.unproven.Give(key, 1)
		httpapi.BodyBy(q.r, time.Now().Add(q.strangerTime))
	}
	body, err := q.body(maxBody)
	if err != nil && !try.Proven() {
		try.Wrong() // else who never ends a body is never refused
	}
	if err != nil {
		return err
	}
	if err := sig.SetBody(body); err != nil {
		return err
	}
	err = q.verify[q.service].Verify(sig, secret)
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
	q.key, q.session = sig.AccessKey, session
	q.become(*user)
	return nil
}

// anonymous reads a request that nobody signed: a web identity is one.
func (q *request) anonymous() error {
	missing := newError("MissingAuthenticationToken", http.StatusForbidden, "Request is missing Authentication Token")
	if !isForm(q.r) {
		return missing
	}
	if err := q.acceptable(maxAnonymousBody); err != nil {
		return err
	}
	httpapi.BodyBy(q.r, time.Now().Add(q.strangerTime))
	body, err := q.body(maxAnonymousBody)
	if err != nil {
		return err
	}
	if q.form, err = url.ParseQuery(string(body)); err != nil || q.form.Get("Action") != "AssumeRoleWithWebIdentity" {
		return missing
	}
	return nil
}

// acceptable returns what the head of a request says against its body.
func (q *request) acceptable(most int64) error {
	if !isForm(q.r) {
		return newError("InvalidInput", http.StatusBadRequest, "The content type must be application/x-www-form-urlencoded.")
	}
	return fits(q.r.ContentLength, most)
}

func fits(n, most int64) error {
	if n > most {
		return newError("RequestEntityTooLarge", http.StatusRequestEntityTooLarge, "The request is larger than %d bytes.", most)
	}
	return nil
}

// body reads the body.
func (q *request) body(most int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(q.r.Body, most+1))
	httpapi.BodyBy(q.r, time.Time{})
	if err := fits(int64(len(b)), most); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, newError("RequestTimeout", http.StatusRequestTimeout, "The body of the request did not come, or not in time.")
	}
	return b, nil
}

// become makes u the caller for all that follows.
func (q *request) become(u users.User) {
	q.user = u
	httpapi.NoteUser(q.ctx, u.Name, string(u.ID), u.UID)
	q.ctx = vfs.WithSubject(q.r.Context(), &vfs.Subject{User: u.ID, Name: u.Name, UID: u.UID, GID: u.GID, Admin: u.Admin, Session: q.session,
		Call: &vfs.Call{Values: &conditionKeys{r: q.r, form: q.form}}})
}

// conditionKeys are what policies know of a request beside the caller. It implements
// policy.Values.
type conditionKeys struct {
	r      *http.Request
	form   url.Values
	claims map[string]string // of a web identity, by key
	one    [1]string
}

// formKeys are keys of STS's that are parameters.
var formKeys = map[string]string{"sts:externalid": "ExternalId", "sts:rolesessionname": "RoleSessionName"}

// Value implements policy.Values.
func (k *conditionKeys) Value(key string) ([]string, bool) {
	if parameter, ok := formKeys[key]; ok {
		k.one[0] = k.form.Get(parameter)
		return k.one[:], k.form.Has(parameter)
	}
	v, ok := k.claims[key]
	if name, aws := strings.CutPrefix(key, "aws:"); aws && !ok {
		v, ok = httpapi.ConditionKey(k.r, name)
	}
	k.one[0] = v
	return k.one[:], ok
}
