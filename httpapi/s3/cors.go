package s3

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"ogw/httpapi"
	"ogw/vfs"
)

// bucketCORS is the name under which a bucket's CORS rules are configured.
const bucketCORS = "cors"

// corsVary is what answers to pages depend on.
const corsVary = "Origin, Access-Control-Request-Headers, Access-Control-Request-Method"

var (
	codeCORSDenied = code{"AccessForbidden", 403, "CORSResponse: This CORS request is not allowed. This is usually because the evalution of Origin, request method / Access-Control-Request-Method or Access-Control-Request-Headers are not whitelisted by the resource's CORS spec."}
	codeCORSNoBuck = code{"AccessForbidden", 403, "CORSResponse: Bucket not found"}
)

// putBucketCORS is PutBucketCors.
func (q *request) putBucketCORS() error {
	var doc corsConfig
	if err := q.readXML(corsBounds, &doc); err != nil {
		return err
	}
	if err := doc.check(); err != nil {
		return err
	}
	text, err := json.Marshal(&doc)
	if err != nil {
		return err
	}
	httpapi.NoteText(q.ctx, "cors", string(text))
	return q.setConfig(bucketCORS, text, http.StatusOK)
}

// getBucketCORS is GetBucketCors.
func (q *request) getBucketCORS() error {
	v, err := q.fs.BucketConfig(q.ctx, q.name.Bucket, bucketCORS)
	if err != nil {
		return err
	}
	if v == nil {
		return newError(codeNoSuchCORS).with("BucketName", q.name.Bucket)
	}
	var doc corsConfig
	if err := json.Unmarshal(v, &doc); err != nil {
		return err
	}
	var x xmlWriter
	x.start("CORSConfiguration", xmlNamespace)
	for i := range doc.Rules {
		x.corsRule(&doc.Rules[i])
	}
	x.end("CORSConfiguration")
	return q.sendPage(&x)
}

func (x *xmlWriter) corsRule(r *corsRule) {
	x.open("CORSRule")
	x.opt("ID", r.ID)
	for _, list := range []struct {
		name   string
		values []string
	}{{"AllowedHeader", r.Headers}, {"AllowedMethod", r.Methods}, {"AllowedOrigin", r.Origins}, {"ExposeHeader", r.Expose}} {
		for _, v := range list.values {
			x.str(list.name, v)
		}
	}
	if r.MaxAge != nil {
		x.int("MaxAgeSeconds", int64(*r.MaxAge))
	}
	x.end("CORSRule")
}

// deleteBucketCORS is DeleteBucketCors.
func (q *request) deleteBucketCORS() error {
	return q.setConfig(bucketCORS, nil, http.StatusNoContent)
}

// setConfig stores configuration of the bucket, nil for none, and answers.
func (q *request) setConfig(name string, value []byte, status int) error {
	if err := q.fs.SetBucketConfig(q.ctx, q.name.Bucket, name, value); err != nil {
		return err
	}
	q.w.WriteHeader(status)
	return nil
}

// corsOf returns the rules of a bucket for the door itself: pages are shown what they
// may do regardless of the caller; nil if there are none.
func (q *request) corsOf(bucket string) (*corsConfig, error) {
	v, err := q.fs.BucketConfig(q.r.Context(), bucket, bucketCORS)
	if err != nil || v == nil {
		return nil, err
	}
	return q.rules.get(v)
}

// shareWithOrigin lets the page that asks see the answer, if the bucket's rules say
// so. Where they cannot be read the answer is for its own origin alone.
func (q *request) shareWithOrigin() {
	origin := httpapi.Field(q.r.Header, "Origin")
	if origin == "" || q.name.Bucket == "" || q.r.Method == http.MethodOptions {
		return
	}
	rules, err := q.corsOf(q.name.Bucket)
	if err != nil || rules == nil {
		return
	}
	q.w.Header().Set("Vary", corsVary)
	method := q.r.Method
	if v := q.r.Header.Get("Access-Control-Request-Method"); v != "" {
		method = v
	}
	if rule, all := rules.match(origin, method, nil); rule != nil {
		q.allowOrigin(rule, origin, all)
	}
}

func (q *request) allowOrigin(r *corsRule, origin string, all bool) {
	h := q.w.Header()
	h.Set("Vary", corsVary)
	if all {
		h.Set("Access-Control-Allow-Origin", "*")
	} else {
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Allow-Credentials", "true")
	}
	h.Set("Access-Control-Allow-Methods", strings.Join(r.Methods, ", "))
	if len(r.Expose) > 0 {
		h.Set("Access-Control-Expose-Headers", strings.Join(r.Expose, ", "))
	}
	if r.MaxAge != nil {
		h.Set("Access-Control-Max-Age", strconv.FormatUint(uint64(*r.MaxAge), 10))
	}
}

// preflight answers what a page of another origin may ask for. It needs no
// signature: browsers send none.
func (q *request) preflight() error {
	origin, method := q.r.Header.Get("Origin"), q.r.Header.Get("Access-Control-Request-Method")
	asked, err := askedHeaders(q.r.Header)
	switch {
	case origin == "":
		return newError(codeBadRequest).withMessage("Insufficient information. Origin request header needed.")
	case !validCORSMethod(method):
		if method == "" {
			method = "null"
		}
		return newError(codeBadRequest).withMessage("Invalid Access-Control-Request-Method: %s", method)
	case err != nil:
		return err
	}
	refusal := codeCORSDenied
	rules, err := q.corsOf(q.name.Bucket)
	switch {
	case errors.Is(err, vfs.ErrNoSuchBucket):
		refusal = codeCORSNoBuck
	case err != nil:
		return err
	case rules == nil:
		refusal = codeAccessForbidden
	default:
		if rule, all := rules.match(origin, method, asked); rule != nil {
			q.allowOrigin(rule, origin, all)
			if len(asked) > 0 {
				q.w.Header().Set("Access-Control-Allow-Headers", strings.Join(asked, ", "))
			}
			q.w.WriteHeader(http.StatusOK)
			return nil
		}
	}
	return newError(refusal).with("Method", method).with("ResourceType", q.level())
}

func validCORSMethod(m string) bool {
	for _, known := range corsMethods {
		if m == known {
			return true
		}
	}
	return false
}

// askedHeaders are the headers that a page wants to send, in lower case: each is
// compared with every pattern of a bucket's rules.
func askedHeaders(h http.Header) ([]string, error) {
	var asked []string
	for item := range httpapi.AskedHeaders(h) {
		if checkCORSValue("", item) != nil || strings.Contains(item, "*") {
			return nil, newError(codeBadRequest).withMessage("Access-Control-Request-Headers \"%s\" contains invalid character.", item)
		}
		if len(asked) == httpapi.MaxAskedHeaders {
			return nil, newError(codeBadRequest).withMessage("Access-Control-Request-Headers names more than %d headers.", httpapi.MaxAskedHeaders)
		}
		asked = append(asked, strings.ToLower(item))
	}
	return asked, nil
}
