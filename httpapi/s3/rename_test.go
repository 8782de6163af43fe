package s3

import (
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
)

// RenameObject with an SDK, as it sends it, and byte by byte.
func TestRenameObject(t *testing.T) {
	d := openDoor(t, Config{})
	c := d.bucket("alice", "ren")
	h := map[string]string{"X-Amz-Meta-A": "b", "X-Amz-Tagging": "t=v", "X-Amz-Acl": "public-read"}
	res, _ := d.wantRaw("alice", "PUT", "/ren/old%20name", []byte("body"), h, 200, "")
	etag := res.Header.Get("ETag")
	in := &awss3.RenameObjectInput{Bucket: aws.String("ren"), Key: aws.String("dir/new"), RenameSource: aws.String("old%20name"), SourceIfMatch: aws.String(etag)}
	if _, err := c.RenameObject(bg, in); err != nil {
		t.Fatal(err)
	}
	res, body := d.wantRaw("", "GET", "/ren/dir/new", nil, nil, 200, "")
	if body != "body" || res.Header.Get("ETag") != etag || res.Header.Get("X-Amz-Meta-A") != "b" || res.Header.Get("X-Amz-Tagging-Count") != "1" {
		t.Errorf("%q %v", body, res.Header)
	}
	d.wantRaw("alice", "GET", "/ren/old%20name", nil, nil, 404, "NoSuchKey")

	d.wantRaw("alice", "PUT", "/ren/a", []byte("a"), nil, 200, "")
	d.wantRaw("alice", "PUT", "/ren/b", []byte("b"), nil, 200, "")
	d.wantRaw("alice", "PUT", "/ren/tree/x/y", []byte("y"), nil, 200, "")
	const dir, src = "X-Ogw-Rename-Directory", "X-Amz-Rename-Source"
	for _, c := range []struct {
		who, target string
		header      []string
		status      int
		says        string
	}{
		{"alice", "/ren/c?renameObject", nil, 400, "<ArgumentName>x-amz-rename-source</ArgumentName>"},
		{"alice", "/ren/c?renameObject", []string{src, "%zz"}, 400, "InvalidArgument"},
		{"alice", "/ren/c?renameObject", []string{src, "none"}, 404, "<Code>NoSuchKey</Code><Message>The specified key does not exist.</Message><Key>none</Key>"},
		{"bob", "/ren/c?renameObject", []string{src, "a"}, 403, "AccessDenied"},
		{"bob", "/ren/c?renameObject", []string{src, "none"}, 403, "AccessDenied"},
		{"", "/ren/c?renameObject", []string{src, "a"}, 403, "AccessDenied"},
		{"alice", "/nowhere/c?renameObject", []string{src, "a"}, 404, "NoSuchBucket"},
		{"alice", "/ren/b?renameObject", []string{src, "a", "If-None-Match", "*"}, 412, "PreconditionFailed"},
		{"alice", "/ren/b?renameObject", []string{src, "a", "X-Amz-Rename-Source-If-Match", `"no"`}, 412, "PreconditionFailed"},
		{"alice", "/ren/b?renameObject", []string{src, "a", "X-Amz-Rename-Source-If-None-Match", "*"}, 412, "PreconditionFailed"},
		{"alice", "/ren/b?renameObject", []string{src, "a", "If-Modified-Since", "Mon, 02 Jan 2090 15:04:05 GMT"}, 412, "PreconditionFailed"},
		{"alice", "/ren/new?renameObject", []string{src, "a", "If-Modified-Since", "Mon, 02 Jan 2006 15:04:05 GMT"}, 412, "PreconditionFailed"},
		{"alice", "/ren/moved/?renameObject", []string{src, "tree/"}, 400, "x-ogw-rename-directory"},
		{"alice", "/ren/moved/?renameObject", []string{src, "tree/", dir, "yes"}, 400, "x-ogw-rename-directory"},
		{"alice", "/ren/moved?renameObject", []string{src, "tree/", dir, "true"}, 400, "InvalidArgument"},
		{"alice", "/ren/dir/?renameObject", []string{src, "tree/", dir, "true"}, 409, "<Code>DirectoryNotEmpty</Code>"},
		{"alice", "/ren/tree/in/?renameObject", []string{src, "tree/", dir, "true"}, 400, "InvalidArgument"},
		{"alice", "/ren/moved/?renameObject", []string{src, "tree/", dir, "true"}, 200, ""},
		{"alice", "/ren/b?renameObject", []string{src, "/ren/a"}, 200, ""},
	} {
		h := map[string]string{}
		for i := 0; i < len(c.header); i += 2 {
			h[c.header[i]] = c.header[i+1]
		}
		d.wantRaw(c.who, "PUT", c.target, nil, h, c.status, c.says)
	}
	d.wantRaw("alice", "GET", "/ren/moved/x/y", nil, nil, 200, "y")
	d.wantRaw("alice", "GET", "/ren/b", nil, nil, 200, "a")
	if _, page := d.wantRaw("alice", "GET", "/ren", nil, nil, 200, ""); strings.Contains(page, "tree") || strings.Contains(page, "<Key>a<") {
		t.Error(page)
	}
}

// A rename that is sent again under its token was made once.
func TestRenameAgain(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "ren")
	d.wantRaw("alice", "PUT", "/ren?acl", nil, map[string]string{"X-Amz-Acl": "public-read-write"}, 200, "")
	d.wantRaw("alice", "PUT", "/ren/a", []byte("a"), nil, 200, "")
	h := func(source, token string) map[string]string {
		return map[string]string{"X-Amz-Rename-Source": source, "X-Amz-Client-Token": token}
	}
	for range 2 {
		d.wantRaw("alice", "PUT", "/ren/b?renameObject", nil, h("a", "one"), 200, "")
	}
	d.wantRaw("alice", "PUT", "/ren/b?renameObject", nil, h("a", "two"), 404, "NoSuchKey")
	d.wantRaw("alice", "PUT", "/ren/c?renameObject", nil, h("b", "one"), 400, "<Code>IdempotencyParameterMismatch</Code>")
	d.wantRaw("bob", "PUT", "/ren/c?renameObject", nil, h("a", "one"), 404, "NoSuchKey")
	d.wantRaw("alice", "PUT", "/ren/c?renameObject", nil, h("b", strings.Repeat("x", 65)), 400, "x-amz-client-token")
	for i := range maxRenameTokens + 1 {
		d.srv.renames.done(digestOf(strconv.Itoa(i)), renameDigest{})
	}
	if n := len(d.srv.renames.made); n > maxRenameTokens {
		t.Errorf("%d tokens", n)
	}
}

// Policies go by keys: the one and the other are asked for, for each key below a
// directory.
func TestRenamePolicies(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "ren")
	allow := func(action, resource string) string {
		return `{"Effect":"Allow","Principal":{"AWS":"` + d.userID("bob") + `"},"Action":"` + action + `","Resource":"arn:aws:s3:::ren/` + resource + `"}`
	}
	rules := func(list ...string) {
		t.Helper()
		d.wantRaw("alice", "PUT", "/ren?policy", []byte(`{"Statement":[`+strings.Join(list, ",")+`]}`), nil, 204, "")
	}
	d.wantRaw("alice", "PUT", "/ren/in/a", []byte("v"), nil, 200, "")
	d.wantRaw("alice", "PUT", "/ren/in/tagged", []byte("v"), map[string]string{"X-Amz-Tagging": "a=b"}, 200, "")
	d.wantRaw("alice", "PUT", "/ren/in/closed/b", []byte("v"), nil, 200, "")
	all := []string{allow("s3:GetObject", "in/*"), allow("s3:DeleteObject", "in/*"), allow("s3:PutObject", "out/*")}
	try := func(to, from string, status int) {
		t.Helper()
		h := map[string]string{"X-Amz-Rename-Source": from}
		if strings.HasSuffix(from, "/") {
			h["X-Ogw-Rename-Directory"] = "true"
		}
		d.wantRaw("bob", "PUT", "/ren/"+to+"?renameObject", nil, h, status, "")
	}
	for i := range all {
		rules(append(append([]string{}, all[:i]...), all[i+1:]...)...)
		try("out/a", "in/a", 403)
		try("out/", "in/", 403)
	}
	rules(all...)
	try("elsewhere/a", "in/a", 403)
	try("out/tagged", "in/tagged", 403) // s3:PutObjectTagging
	try("out/", "in/", 403)
	rules(append(all, allow("s3:PutObjectTagging", "out/*"), strings.Replace(allow("s3:DeleteObject", "in/closed/*"), "Allow", "Deny", 1))...)
	try("out/", "in/", 403)
	try("out/a", "in/a", 200)
	rules(append(all, allow("s3:PutObjectTagging", "out/*"))...)
	try("out/more/", "in/", 200)
	d.wantRaw("alice", "GET", "/ren/out/more/closed/b", nil, nil, 200, "v")
}
