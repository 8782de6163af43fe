package rest

import (
	"net/http"
	"slices"
	"testing"
)

// TestConditionKeysOfWrites: what a policy demands of requests that make objects it demands
// here, too, and nothing that is not gone by meets it.
func TestConditionKeysOfWrites(t *testing.T) {
	for _, c := range []struct {
		method            string
		header            http.Header
		create, none, own []string // nil: the request does not have it
	}{
		{"PUT", http.Header{"If-None-Match": {"*"}}, []string{"true"}, []string{"*"}, nil},
		{"POST", http.Header{"If-Match": {`"a"`}}, []string{"true"}, nil, []string{`"a"`}},
		{"PUT", http.Header{"If-None-Match": {","}, "If-Match": {""}}, []string{"true"}, nil, nil},
		{"GET", http.Header{"If-None-Match": {"*"}, "If-Match": {`"a"`}}, nil, nil, nil},
		{"DELETE", http.Header{"If-Match": {`"a"`}}, nil, nil, nil},
	} {
		k := &conditionKeys{r: &http.Request{Method: c.method, Header: c.header}}
		for key, want := range map[string][]string{"s3:objectcreationoperation": c.create, "s3:if-none-match": c.none, "s3:if-match": c.own} {
			if got, ok := k.Value(key); ok != (want != nil) || ok && !slices.Equal(got, want) {
				t.Errorf("%s %v: %s is %q, %v, want %q", c.method, c.header, key, got, ok, want)
			}
		}
	}
}
