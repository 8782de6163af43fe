package s3

import (
	"encoding/xml"
	"net/http"
	"strconv"
	"strings"
	"time"

	"ogw/httpapi"
	"ogw/vfs"
)

// deleteObject is DeleteObject; to delete what does not exist is a success.
func (q *request) deleteObject() error {
	cond := httpapi.ParseConditions(q.r.Header, "").VFS()
	modified, _, err := timeHeader(q.r.Header, "X-Amz-If-Match-Last-Modified-Time")
	if err != nil {
		return err
	}
	cond.IfModifiedAt = modified
	if cond.IfSize, err = sizeCondition(q.r.Header.Get("X-Amz-If-Match-Size")); err != nil {
		return err
	}
	_, err = q.fs.DeleteObject(q.ctx, q.name, vfs.DeleteOptions{Cond: cond})
	if err != nil {
		return err
	}
	q.w.WriteHeader(http.StatusNoContent)
	return nil
}

// timeHeader reads a time as S3's clients write it.
func timeHeader(h http.Header, name string) (t time.Time, given bool, err error) {
	v := h.Get(name)
	if v == "" {
		return t, false, nil
	}
	if t, err = parseTime(v); err != nil {
		return t, true, invalidArgument(strings.ToLower(name), v, "Invalid timestamp value specified.")
	}
	return t, true, nil
}

// parseTime reads a time of HTTP or of XML.
func parseTime(v string) (time.Time, error) {
	t, err := http.ParseTime(v)
	if err != nil {
		t, err = time.Parse(time.RFC3339, v)
	}
	return t, err
}

// sameSecond compares as finely as HTTP can say.
func sameSecond(a, b time.Time) bool { return a.Unix() == b.Unix() }

// sizeCondition reads x-amz-if-match-size; nil if there is none.
func sizeCondition(v string) (*int64, error) {
	if v == "" {
		return nil, nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 {
		return nil, invalidArgument("x-amz-if-match-size", v, "Invalid size value specified.")
	}
	return &n, nil
}

// conditional reports whether the object must be as the entry says.
func (e *deleteEntry) conditional() bool { return e.ETag != "" || e.LastModified != "" || e.Size != "" }

// condition returns what an entry of DeleteObjects asks for.
func (e *deleteEntry) condition() (vfs.Preconditions, error) {
	var c vfs.Preconditions
	if e.ETag != "" {
		c = httpapi.ParseConditions(http.Header{"If-Match": {e.ETag}}, "").VFS()
	}
	var err error
	if e.LastModified != "" {
		if c.IfModifiedAt, err = parseTime(e.LastModified); err != nil {
			return c, newError(codeMalformedXML)
		}
	}
	if c.IfSize, err = sizeCondition(e.Size); err != nil {
		return c, newError(codeMalformedXML)
	}
	return c, nil
}

type deleteXML struct {
	XMLName xml.Name   `xml:"Delete"`
	Quiet   bool       `xml:"Quiet"`
	Objects deleteList `xml:"Object"`
}

// deleteList ends the decoding at the first object over the limit.
type deleteList []deleteEntry

// UnmarshalXML implements xml.Unmarshaler: it is called for each object.
func (l *deleteList) UnmarshalXML(d *xml.Decoder, start xml.StartElement) error {
	if len(*l) == maxDeleteKeys {
		return errXMLBounds
	}
	var e deleteEntry
	if err := d.DecodeElement(&e, &start); err != nil {
		return err
	}
	*l = append(*l, e)
	return nil
}

type deleteEntry struct {
	Key          *string `xml:"Key"`
	VersionID    string  `xml:"VersionId"`
	ETag         string  `xml:"ETag"`
	LastModified string  `xml:"LastModifiedTime"`
	Size         string  `xml:"Size"`
}

// batch is what a DeleteObjects asks for, entry by entry.
type batch struct {
	results []error // so far of entries that nobody need be asked for
	guarded []guardedEntry
	plain   []int // entries without a condition, and their keys
	keys    []string
}

// guardedEntry is an entry with a condition.
type guardedEntry struct {
	i    int
	cond vfs.Preconditions
}

// batch checks the whole document: nothing is deleted for one that is refused.
func (doc *deleteXML) batch() (*batch, error) {
	if len(doc.Objects) == 0 {
		return nil, newError(codeMalformedXML)
	}
	b := &batch{results: make([]error, len(doc.Objects))}
	for i := range doc.Objects {
		o := &doc.Objects[i]
		if o.Key == nil {
			return nil, newError(codeMalformedXML)
		}
		cond, err := o.condition()
		if err != nil {
			return nil, err
		}
		switch {
		case *o.Key == "":
			b.results[i] = newError(codeKeyMustBeSpecified)
		case o.VersionID != "" && o.VersionID != "null":
			b.results[i] = newError(codeNoSuchVersion)
		case o.conditional():
			b.guarded = append(b.guarded, guardedEntry{i, cond})
		default:
			b.plain = append(b.plain, i)
			b.keys = append(b.keys, *o.Key)
		}
	}
	return b, nil
}

// deleteObjects is DeleteObjects: each key has its own outcome.
func (q *request) deleteObjects() error {
	var doc deleteXML
	if err := q.readXML(deleteBounds, &doc); err != nil {
		return err
	}
	b, err := doc.batch()
	if err != nil {
		return err
	}
	for _, g := range b.guarded {
		_, err := q.fs.DeleteObject(q.ctx, vfs.ObjectName{Bucket: q.name.Bucket, Key: *doc.Objects[g.i].Key}, vfs.DeleteOptions{Cond: g.cond})
		b.results[g.i] = err
	}
	if len(b.keys) > 0 {
		done, err := q.fs.DeleteObjects(q.ctx, q.name.Bucket, b.keys)
		if done == nil && len(b.guarded) == 0 {
			return err // the bucket's: nothing was asked of any key
		}
		for n, i := range b.plain {
			if b.results[i] = err; done != nil {
				b.results[i] = done[n].Err
			}
		}
	}
	q.tellDeleted(&doc, b.results)
	if err := q.ctx.Err(); err != nil {
		return err // the client left
	}
	q.sendDeleted(&doc, b.results)
	return nil
}

// tellDeleted reports to the audit how many keys were named, the first of them by
// outcome, and all that were deleted.
func (q *request) tellDeleted(doc *deleteXML, results []error) {
	var deleted, refused, failed deletedKeys
	removed := make([]string, 0, len(results))
	for i, o := range doc.Objects {
		switch err := results[i]; {
		case err == nil:
			deleted.add(*o.Key)
			removed = append(removed, *o.Key)
		case toAPI(err).status == http.StatusForbidden:
			refused.add(*o.Key)
			httpapi.NoteRefused(q.ctx, err)
		default:
			failed.add(*o.Key)
		}
	}
	refused.tell(q, "refused")
	failed.tell(q, "failed")
	deleted.tell(q, "deleted")
	httpapi.NoteRemoved(q.ctx, removed)
}

// deletedKeys are keys of one outcome.
type deletedKeys struct {
	first []string
	n     int
}

func (k *deletedKeys) add(key string) {
	if k.n++; len(k.first) < maxToldKeys {
		k.first = append(k.first, strconv.Quote(key))
	}
}

func (k *deletedKeys) tell(q *request, outcome string) {
	if k.n > 0 {
		httpapi.NoteText(q.ctx, outcome, strconv.Itoa(k.n)+" ["+strings.Join(k.first, " ")+"]")
	}
}

func (q *request) sendDeleted(doc *deleteXML, results []error) {
	var x xmlWriter
	x.start("DeleteResult", xmlNamespace)
	for i, o := range doc.Objects {
		err := results[i]
		if err == nil {
			if !doc.Quiet {
				x.open("Deleted")
				x.str("Key", *o.Key)
				x.end("Deleted")
			}
			continue
		}
		e := toAPI(err)
		if e.status >= http.StatusInternalServerError {
			httpapi.Note(q.ctx, "", "", err)
		}
		x.open("Error")
		x.str("Key", *o.Key)
		x.opt("VersionId", o.VersionID)
		x.str("Code", e.name)
		x.str("Message", e.message)
		x.end("Error")
	}
	x.end("DeleteResult")
	x.send(q.w, q.r, http.StatusOK)
}
