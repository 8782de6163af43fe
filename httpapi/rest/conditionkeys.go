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
	if key == "s3:x-amz-request-payer" {
		k.one[0] = k.r.Header.Get("X-Amz-Request-Payer")
		return k.one[:], k.one[0] != ""
	}
	name, ok := strings.CutPrefix(key, "aws:")
	if !ok {
		return nil, false
	}
	k.one[0], ok = httpapi.ConditionKey(k.r, name)
	return k.one[:], ok
}
