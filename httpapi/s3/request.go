package s3

import (
	"context"
	"net/http"
	"net/url"

	"ogw/httpapi/eager"
	"ogw/httpapi/fair"
	"ogw/httpapi/sigv4"
	"ogw/vfs"
)

// request is one request on its way through an operation.
type request struct {
	*Server
	w    http.ResponseWriter
	r    *http.Request
	asks vfs.SubjectContext
	ctx  context.Context // is asks
	q    url.Values
	op   *operation
	name vfs.ObjectName
	// hostBucket is the bucket that the Host header named, "" in path style.
	hostBucket string
	sig        *sigv4.Signature // nil: anonymous, or a form not yet read
	id         identity
	subject    vfs.Subject          // is id, once it is known
	info       vfs.BucketInfo       // of the bucket, if the right to it was asked for
	values     [headerValues]string // backs header values
	nvalues    int
	slotOf     fair.Key // who holds the slot of this request
	slot       fair.Holder
	memory     int64 // taken of documents
	eager      bool  // for a document that is decoded

	// What policies go by.
	call vfs.Call
	keys conditionKeys
}

// headerValues is what most responses need.
const headerValues = 8

// one returns a list of one header value. The lists of a response are parts of the
// request, while it lasts.
func (q *request) one(v string) []string {
	n := q.nvalues
	if n == len(q.values) {
		return []string{v}
	}
	q.values[n] = v
	q.nvalues++
	return q.values[n : n+1 : n+1]
}

// takeMemory counts n bytes that a document takes until the request ends, of
// which nobody may have all.
func (q *request) takeMemory(n int64) error {
	if !q.documents.Take(q.slotOf, n) {
		return newError(codeSlowDown)
	}
	q.memory += n
	return nil
}

// takeDecoded is takeMemory for what a document becomes, which makes a multiple of
// garbage on the way.
func (q *request) takeDecoded(n int64) error {
	if !q.eager {
		q.eager = true
		eager.Begin()
	}
	return q.takeMemory(n)
}

// enter takes a slot for the request: nothing is held, and no body is read,
// for one that is not authenticated and may not do what it asks for.
func (q *request) enter() error {
	var ok bool
	q.slotOf = q.client()
	if q.slot, ok = q.slots.Hold(q.slotOf, 1); !ok {
		return newError(codeSlowDown)
	}
	return nil
}

// leave gives everything back.
func (q *request) leave() {
	if q.memory > 0 {
		q.documents.Give(q.slotOf, q.memory)
		q.memory = 0
	}
	if q.eager {
		eager.End()
		q.eager = false
	}
	q.slot.End()
}

// client is by whom slots and memory are counted: the user, else the address.
func (q *request) client() fair.Key {
	if q.id.anonymous() {
		return fair.Address(q.r.RemoteAddr)
	}
	return fair.User(string(q.id.id()))
}

// become makes id the caller for all that follows.
func (q *request) become(id identity) {
	q.id = id
	q.subject = id.subject()
	q.asks.Subject = &q.subject
	if q.op == nil {
		return
	}
	k := &q.keys // its claim is there
	k.r, k.q, k.op, k.header, k.tags, k.region, k.now = q.r, q.q, q.op.name, q.r.Header, nil, q.region(), q.cfg.Now
	q.call = vfs.Call{Act: vfs.ActWriteObject, Values: &q.keys} // a form's
	if q.op.needs >= 0 {
		q.call.Act, q.call.Action = vfs.Action(q.op.needs), policyActions[q.op.name]
	}
	q.asks.Subject.Call = &q.call
}

// sendPage sends a listing, which a client that reads slowly keeps in memory.
func (q *request) sendPage(x *xmlWriter) error {
	if len(x.b) > maxConfigBytes {
		if err := q.takeMemory(int64(len(x.b))); err != nil {
			return err
		}
	}
	x.send(q.w, q.r, http.StatusOK)
	return nil
}

// level is where the operation stands, as S3 writes it in errors.
func (q *request) level() string {
	switch {
	case q.name.Key != "":
		return "OBJECT"
	case q.name.Bucket != "":
		return "BUCKET"
	}
	return "SERVICE"
}
