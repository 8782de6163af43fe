package s3

import (
	"crypto/tls"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"ogw/httpapi"
	"ogw/httpapi/sigv4"
)

// conditionKeys are the condition keys of a request, as the conditions of policies
// name them (S3 user guide, "Bucket policy examples using condition keys"). It
// implements policy.Values.
type conditionKeys struct {
	r      *http.Request
	q      url.Values
	header http.Header      // what describes the object: of a form, its fields
	claim  *sigv4.Signature // that was found right; nil: anonymous
	tags   url.Values       // tags in the body, or of what is copied; nil: they are in a header
	op     string           // name of the operation
	region string
	now    func() time.Time
	one    [1]string
}

const (
	// taggingHeader holds the tags of a request; of a copy, if taggingDirectiveHeader says so.
	taggingHeader          = "X-Amz-Tagging"
	taggingDirectiveHeader = "X-Amz-Tagging-Directive"
	contentSHA256Header    = "X-Amz-Content-Sha256"
)

// headerKeys are keys of S3's that are headers of the same name.
var headerKeys = map[string]string{
	"x-amz-acl": "X-Amz-Acl", "x-amz-content-sha256": contentSHA256Header, "x-amz-copy-source": copySourceHeader,
	"x-amz-grant-full-control": "X-Amz-Grant-Full-Control", "x-amz-grant-read": "X-Amz-Grant-Read",
	"x-amz-grant-read-acp": "X-Amz-Grant-Read-Acp", "x-amz-grant-write": "X-Amz-Grant-Write",
	"x-amz-grant-write-acp": "X-Amz-Grant-Write-Acp", "x-amz-metadata-directive": "X-Amz-Metadata-Directive",
	"x-amz-object-ownership": "X-Amz-Object-Ownership", "x-amz-request-payer": "X-Amz-Request-Payer", "x-amz-server-side-encryption": "X-Amz-Server-Side-Encryption",
	"x-amz-server-side-encryption-aws-kms-key-id":     "X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id",
	"x-amz-server-side-encryption-customer-algorithm": "X-Amz-Server-Side-Encryption-Customer-Algorithm",
	"x-amz-storage-class":                             "X-Amz-Storage-Class", "x-amz-website-redirect-location": "X-Amz-Website-Redirect-Location",
	"object-lock-mode": "X-Amz-Object-Lock-Mode", "object-lock-legal-hold": "X-Amz-Object-Lock-Legal-Hold",
	"object-lock-retain-until-date": "X-Amz-Object-Lock-Retain-Until-Date",
	"if-match":                      "If-Match", "if-none-match": "If-None-Match",
}

// listKeys are keys of S3's that are parameters, of lists alone: another request could carry
// them to meet a condition.
var listKeys = map[string]bool{"prefix": true, "delimiter": true, "max-keys": true}

// keyLists are the operations that list keys, with the parameter that says how many.
var keyLists = map[string]string{"ListObjects": "max-keys", "ListObjectsV2": "max-keys", "ListObjectVersions": "max-keys", "ListMultipartUploads": uploadsParameter}

const uploadsParameter = "max-uploads"

// tagging are the operations that store the tags of taggingHeader, and copying those that copy
// if there is a copy source. Another operation could carry both headers to meet a condition.
var (
	tagging = map[string]bool{"PutObject": true, "CreateMultipartUpload": true, "PostObject": true}
	copying = map[string]bool{"PutObject": true, "UploadPart": true}
)

// creating says of the operations that policies call s3:PutObject whether they make an object.
// Those that do not take no conditions, of which a policy that demands some exempts them.
var creating = map[string]string{"PutObject": "true", "PostObject": "true", "CompleteMultipartUpload": "true", "RenameObject": "true",
	"CreateMultipartUpload": "false", "UploadPart": "false"}

// requestTag begins keys that are tags of the request.
const requestTag = "requestobjecttag/"

// Value implements policy.Values.
func (k *conditionKeys) Value(key string) ([]string, bool) {
	service, name, _ := strings.Cut(key, ":")
	switch service {
	case "aws":
		if name == "requestedregion" {
			return k.single(k.region, true)
		}
		return k.single(httpapi.ConditionKey(k.r, name))
	case "s3":
		if header, ok := headerKeys[name]; ok {
			return k.single(k.headerValue(header))
		}
		switch {
		case name == "versionid":
			return k.single(k.q.Get("versionId"), k.q.Has("versionId"))
		case name == "objectcreationoperation":
			return k.single(creating[k.op], creating[k.op] != "")
		case listKeys[name] && keyLists[k.op] != "":
			return k.single(k.listValue(name))
		}
		if key, ok := strings.CutPrefix(name, requestTag); ok {
			return k.tagValues(key)
		}
		if name == "requestobjecttagkeys" {
			return k.tagNames()
		}
		return k.single(k.signed(name))
	}
	return nil, false
}

// single returns a list of one, which the next call overwrites.
func (k *conditionKeys) single(v string, ok bool) ([]string, bool) {
	if !ok {
		return nil, false
	}
	k.one[0] = v
	return k.one[:], true
}

// headerValue is what all lines of a header say, unless that is nothing: a header by which
// nothing is done meets no demand for it.
func (k *conditionKeys) headerValue(name string) (string, bool) {
	if name == contentSHA256Header && k.claim != nil {
		return k.claim.Payload.String(), true // also where no header says it
	}
	lines, ok := k.header[name]
	if !ok {
		return "", false
	}
	v := strings.Join(lines, ",")
	switch name {
	case copySourceHeader:
		source, err := parseCopySource(v)
		return source.Bucket + "/" + source.Key, k.copies() && err == nil
	case "If-Match":
		return v, httpapi.ParseConditions(k.header, "").IfMatch.Given()
	case "If-None-Match":
		return v, httpapi.ParseConditions(k.header, "").IfNoneMatch.Given()
	}
	return v, v != ""
}

// listValue is what a parameter of a list says.
func (k *conditionKeys) listValue(name string) (string, bool) {
	if name != "max-keys" {
		return k.q.Get(name), k.q.Has(name)
	}
	limit := keyLists[k.op]
	v := k.q.Get(limit)
	if v == "" && limit == uploadsParameter { // of a list of objects that says nothing, vfs knows how long it is
		v = strconv.Itoa(maxPage)
	}
	return v, v != ""
}

// signed are keys about how the request was signed and sent.
func (k *conditionKeys) signed(name string) (string, bool) {
	if name == "tlsversion" {
		return tlsVersion(k.r.TLS)
	}
	if k.claim == nil {
		return "", false
	}
	switch name {
	case "signatureversion":
		if k.claim.Scheme == sigv4.HeaderV2 || k.claim.Scheme == sigv4.PresignedV2 || k.claim.Scheme == sigv4.PostV2 {
			return "AWS", true
		}
		return "AWS4-HMAC-SHA256", true
	case "authtype":
		switch k.claim.Scheme {
		case sigv4.PostV2, sigv4.PostV4:
			return "POST", true
		case sigv4.PresignedV2, sigv4.PresignedV4:
			return "REST-QUERY-STRING", true
		}
		return "REST-HEADER", true
	case "signatureage":
		t, ok := k.claim.Time()
		return strconv.FormatInt(k.now().Sub(t).Milliseconds(), 10), ok
	}
	return "", false
}

func tlsVersion(s *tls.ConnectionState) (string, bool) {
	if s == nil {
		return "", false
	}
	switch s.Version {
	case tls.VersionTLS12:
		return "1.2", true
	case tls.VersionTLS13:
		return "1.3", true
	}
	return "", false
}

// copies reports whether the request copies.
func (k *conditionKeys) copies() bool {
	return copying[k.op] && k.header.Get(copySourceHeader) != ""
}

// takesTags reports whether the request copies an object with its tags.
func (k *conditionKeys) takesTags() bool {
	return k.copies() && tagging[k.op] && k.header.Get(taggingDirectiveHeader) != "REPLACE"
}

// requestTags are the tags that the request brings.
func (k *conditionKeys) requestTags() url.Values {
	if k.tags != nil || !tagging[k.op] || k.takesTags() {
		return k.tags
	}
	tags, _ := url.ParseQuery(k.header.Get(taggingHeader)) // what is not understood is refused later
	return tags
}

func (k *conditionKeys) tagNames() ([]string, bool) {
	names := slices.Sorted(maps.Keys(k.requestTags()))
	return names, len(names) > 0
}

// tagValues returns the value of a tag, in whatever case its name is.
func (k *conditionKeys) tagValues(name string) (values []string, ok bool) {
	for tag, v := range k.requestTags() {
		if strings.EqualFold(tag, name) {
			values = append(values, v...)
		}
	}
	slices.Sort(values)
	return values, len(values) > 0
}
