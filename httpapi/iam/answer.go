package iam

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/xml"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"ogw/httpapi"
	"ogw/vfs/iam"
)

// timeFormat is how the API writes times.
const timeFormat = "2006-01-02T15:04:05Z"

func timeOf(ns int64) string { return time.Unix(0, ns).UTC().Format(timeFormat) }

// members is a list as the query protocol writes one: its element is there, too, if
// the list is empty.
type members[T any] struct {
	Member []T `xml:"member"`
}

type metadata struct {
	RequestID string `xml:"RequestId"`
}

// document writes the answer to an action; a nil result has no element.
func document(ctx context.Context, service, action string, result any) ([]byte, error) {
	var b bytes.Buffer
	e := xml.NewEncoder(&b)
	root := xml.StartElement{Name: xml.Name{Local: action + "Response"}, Attr: []xml.Attr{{Name: xml.Name{Local: "xmlns"}, Value: namespaces[service]}}}
	err := e.EncodeToken(root)
	if result != nil && err == nil {
		err = e.EncodeElement(result, xml.StartElement{Name: xml.Name{Local: action + "Result"}})
	}
	if err == nil {
		err = e.EncodeElement(metadata{httpapi.RequestID(ctx)}, xml.StartElement{Name: xml.Name{Local: "ResponseMetadata"}})
	}
	if err == nil {
		err = e.EncodeToken(root.End())
	}
	if err == nil {
		err = e.Flush()
	}
	return b.Bytes(), err
}

func send(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "text/xml")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that left has no more use for it
}

const (
	// maxItems and defaultItems are IAM's.
	maxItems     = 1000
	defaultItems = 100
)

// paged is the end of an answer that may be one page of several.
type paged struct {
	IsTruncated bool
	Marker      string `xml:",omitempty"`
}

// page returns the page of a list, in order of names, that the request asks for. A
// marker is the last name of the page before.
func page[T any](q *request, list []T, name func(*T) string) ([]T, paged, error) {
	size := defaultItems
	if v := q.form.Get("MaxItems"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 || n > maxItems {
			return nil, paged{}, newError(string(iam.ValidationError), http.StatusBadRequest, "1 validation error detected: Value '%.32s' at 'maxItems' failed to satisfy constraint: Member must have value between 1 and %d", v, maxItems)
		}
		size = n
	}
	if v := q.form.Get("Marker"); v != "" {
		after, err := base64.URLEncoding.DecodeString(v)
		if err != nil {
			return nil, paged{}, newError(string(iam.ValidationError), http.StatusBadRequest, "Invalid Marker.")
		}
		list = slices.DeleteFunc(list, func(x T) bool { return name(&x) <= string(after) })
	}
	if len(list) <= size {
		return list, paged{}, nil
	}
	list = list[:size]
	return list, paged{true, base64.URLEncoding.EncodeToString([]byte(name(&list[size-1])))}, nil
}

// membersOf shows each of a list.
func membersOf[T, X any](list []T, show func(*T) X) (m members[X]) {
	for i := range list {
		m.Member = append(m.Member, show(&list[i]))
	}
	return m
}

// escape writes a text as RFC 3986 does, in which the API returns policies.
func escape(text []byte) string { return strings.ReplaceAll(url.QueryEscape(string(text)), "+", "%20") }
