package vfs

import (
	"strings"
	"testing"

	"ogw/vfs/iam"
	"ogw/vfs/users"
)

// TestMayRead: who may read a prefix reads and lists that, and does nothing else, from
// the first moment on.
func TestMayRead(t *testing.T) {
	c := newCast(t)
	c.bucketOf("bkt", "p/a", "p/b/c", "q", "s*/x", "sy/x")
	c.bucketOf("all", "k")
	text, err := iam.ReadOnly([]string{"bkt/p/", "bkt/s*/", "all"})
	want(t, err, nil)
	also, err := c.fs.IAM().WithInline(iam.ReadPolicy, text)
	want(t, err, nil)
	_, err = c.fs.Users().Make(bg, users.User{Name: "reader"}, users.Options{FreeUID: true, Also: also})
	want(t, err, nil)
	for key, denied := range map[string]error{"p/a": nil, "p/b/c": nil, "q": ErrAccess, "s*/x": nil, "sy/x": ErrAccess, "p": ErrAccess} {
		want(t, c.reads("reader", "bkt", key), denied)
	}
	want(t, c.reads("reader", "all", "k"), nil)
	list := func(bucket, prefix string) error {
		_, err := c.fs.ListObjects(c.as("reader"), bucket, ListOptions{Prefix: prefix, MaxKeys: 10})
		return err
	}
	want(t, list("bkt", "p/"), nil)
	want(t, list("bkt", "p/b"), nil)
	want(t, list("bkt", ""), ErrAccess)
	want(t, list("bkt", "sy/"), ErrAccess)
	want(t, list("all", ""), nil)
	want(t, putAs(c.fs, c.subject("reader"), "bkt", "p/new", nil), ErrAccess)
	_, err = c.fs.DeleteObject(c.as("reader"), ObjectName{"bkt", "p/a"}, DeleteOptions{})
	want(t, err, ErrAccess)
	_, err = c.fs.CreateBucket(c.as("reader"), "readers", nil)
	want(t, err, ErrAccess)
	for _, bad := range []string{"", "/p", "b*/p", strings.Repeat("*", 9)} {
		_, err := iam.ReadOnly([]string{bad})
		want(t, err, ErrInvalid)
	}
	if _, err := c.fs.IAM().WithInline(iam.ReadPolicy, []byte("{")); err == nil {
		t.Error("no policy is taken")
	}
}
