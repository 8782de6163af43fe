package adversary

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"ogw/integration/testenv"
)

// TestPresignedURLsAreNotBent: who holds a URL that alice signed with Version 2
// gets nothing else done with it.
func TestPresignedURLsAreNotBent(t *testing.T) {
	s := newServer(t, testenv.ServerOptions{})
	alice := newPerson(t, s, "alice")
	put := func(target, body string) { must(t, "PUT "+target)(alice.s3(t, s, "PUT", target, body)) }
	put("/hers", "")
	put("/hers/a", "of a")
	put("/hers/secret", "for alice")
	expires := fmt.Sprint(time.Now().Add(time.Hour).Unix())
	// signed is a URL for PUT /hers/out with what is between date and resource.
	signed := func(digest, headers, query string) string {
		mac := hmac.New(sha1.New, []byte(alice.secret))
		fmt.Fprintf(mac, "PUT\n%s\n\n%s\n%s/hers/out", digest, expires, headers)
		return "/hers/out?AWSAccessKeyId=" + alice.key + "&Expires=" + expires +
			"&Signature=" + url.QueryEscape(base64.StdEncoding.EncodeToString(mac.Sum(nil))) + "&" + query
	}
	sum := md5.Sum([]byte("right"))
	digest := base64.StdEncoding.EncodeToString(sum[:])
	copyA, private := "x-amz-copy-source:/hers/a\n", "x-amz-acl:private\n"
	for name, target := range map[string]string{
		"another source":      signed("", copyA, "x-amz-copy-source=/hers/a&X-Amz-Copy-Source=/hers/secret"),
		"another ACL":         signed("", private, "x-amz-acl=private&X-Amz-Acl=public-read"),
		"a name of two lines": signed("", private+copyA, url.QueryEscape("x-amz-acl:private\nx-amz-copy-source")+"=/hers/a"),
		"another body":        signed(digest, "", "content-md5="+url.QueryEscape(digest)),
	} {
		put("/hers/out", "before")
		for range 16 { // what bends a URL by the order of a map does not each time
			status, body := person{}.s3(t, s, "PUT", target, "wrong")
			if status != 400 {
				t.Errorf("%s: %d, want 400\n%.300s", name, status, body)
			}
			if got := must(t, "GET")(alice.s3(t, s, "GET", "/hers/out", "")); got != "before" {
				t.Fatalf("%s: stored %q", name, got)
			}
		}
		if acl := must(t, "GET ?acl")(alice.s3(t, s, "GET", "/hers/out?acl", "")); strings.Contains(acl, "AllUsers") {
			t.Errorf("%s: is public", name)
		}
	}
	must(t, "as signed")(person{}.s3(t, s, "PUT", signed("", copyA, "x-amz-copy-source=/hers/a"), ""))
	must(t, "the right body")(person{}.s3(t, s, "PUT", signed(digest, private, "x-amz-acl=private&content-md5="+url.QueryEscape(digest)), "right"))
}
