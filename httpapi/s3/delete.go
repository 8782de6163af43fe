package s3

import (
	"encoding/xml"
	"net/http"
	"strings"

	"ogw/httpapi"
	"ogw/vfs"
)

// deleteObject is DeleteObject; to delete what does not exist is a success.
func (q *request) deleteObject() error {
	if err := refuseDeleteConditions(q.r.Header); err != nil {
		return err
	}
	_, err := q.fs.DeleteObject(q.ctx, q.bucket, q.key, vfs.DeleteOptions{Cond: httpapi.ParseConditions(q.r.Header, "").VFS()})
	if err != nil {
		return err
	}
	q.w.WriteHeader(http.StatusNoContent)
	return nil
}

func refuseDeleteConditions(h http.Header) error {
	for _, name := range []string{"X-Amz-If-Match-Last-Modified-Time", "X-Amz-If-Match-Size"} {
		if h.Get(name) != "" {
			return newError(codeNotImplemented).with("Header", strings.ToLower(name))
		}
	}
	return nil
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

// deleteObjects is DeleteObjects: each key has its own outcome.
func (q *request) deleteObjects() error {
	var doc deleteXML
	if err := q.readXML(deleteBounds, &doc); err != nil {
		return err
	}
	if len(doc.Objects) == 0 {
		return newError(codeMalformedXML)
	}
	results := make([]error, len(doc.Objects))
	var plain []int
	var keys []string
	for i, o := range doc.Objects {
		if err := q.ctx.Err(); err != nil {
			return err // the client left
		}
		if o.Key == nil {
			return newError(codeMalformedXML)
		}
		switch {
		case *o.Key == "":
			results[i] = newError(codeKeyMustBeSpecified)
		case o.VersionID != "" && o.VersionID != "null":
			results[i] = newError(codeNoSuchVersion)
		case o.LastModified != "" || o.Size != "":
			results[i] = newError(codeNotImplemented)
		case o.ETag != "":
			h := http.Header{"If-Match": {o.ETag}}
			_, results[i] = q.fs.DeleteObject(q.ctx, q.bucket, *o.Key, vfs.DeleteOptions{Cond: httpapi.ParseConditions(h, "").VFS()})
		default:
			plain = append(plain, i)
			keys = append(keys, *o.Key)
		}
	}
	if len(keys) > 0 {
		done, err := q.fs.DeleteObjects(q.ctx, q.bucket, keys)
		if err != nil {
			return err
		}
		for i, d := range done {
			results[plain[i]] = d.Err
		}
	}
	q.sendDeleted(&doc, results)
	return nil
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
