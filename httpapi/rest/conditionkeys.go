package rest

import (
	"net/http"
	"strings"

	"ogw/httpapi"
)

// conditionKeys are what policies know of a request beside the caller. It implements
// policy.Values.
type conditionKeys struct {
	r   *http.Request
	one [1]string
}

// Value implements policy.Values.
func (k *conditionKeys) Value(key string) ([]string, bool) {
	switch key {
	case "s3:x-amz-request-payer":
		k.one[0] = k.r.Header.Get("X-Amz-Request-Payer")
		return k.one[:], k.one[0] != ""
	case "s3:objectcreationoperation": // without which no demand for the two below would hold here
		k.one[0] = "true"
		return k.one[:], k.puts()
	case "s3:if-match":
		k.one[0] = strings.Join(k.r.Header["If-Match"], ",")
		return k.one[:], k.puts() && httpapi.ParseConditions(k.r.Header, "").IfMatch.Given()
	case "s3:if-none-match":
		k.one[0] = strings.Join(k.r.Header["If-None-Match"], ",")
		return k.one[:], k.puts() && httpapi.ParseConditions(k.r.Header, "").IfNoneMatch.Given()
	}
	name, ok := strings.CutPrefix(key, "aws:")
	if !ok {
		return nil, false
	}
	k.one[0], ok = httpapi.ConditionKey(k.r, name)
	return k.one[:], ok
}

// puts reports whether the request makes an object.
func (k *conditionKeys) puts() bool {
	return k.r.Method == http.MethodPut || k.r.Method == http.MethodPost
}
