package rest

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"ogw/httpapi/apierr"
	"ogw/vfs"
)

// TestRequestWithoutSubject: a request that was not let in asks as nobody.
func TestRequestWithoutSubject(t *testing.T) {
	g := newGateway(t, Config{Tokens: []string{"a-token-of-somebody"}})
	ctx := context.Background()
	if _, err := g.fs.CreateBucket(ctx, "private", vfs.Root); err != nil {
		t.Fatal(err)
	}
	s := New(Config{FS: g.fs, Tokens: []string{"a-token-of-somebody"}})
	r := &request{Request: httptest.NewRequest("PUT", "/private/key", nil), w: httptest.NewRecorder()}
	if err := s.admit(r); !errors.Is(err, apierr.ErrUnauthorized) {
		t.Fatal(err)
	}
	_, err := g.fs.PutObject(r.Context(), vfs.ObjectName{Bucket: "private", Key: "key"}, strings.NewReader("x"), vfs.PutOptions{Size: 1})
	if !errors.Is(err, vfs.ErrAccess) {
		t.Errorf("writes all the same: %v", err)
	}
}
