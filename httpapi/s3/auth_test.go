package s3

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"ogw/httpapi/sigv4"
	"ogw/vfs/users"
)

func TestSignatureErrors(t *testing.T) {
	d := openDoor(t, Config{})
	put(t, d.bucket("alice", "sig"), "sig", "k", "body")
	for name, c := range map[string]struct {
		change func(*http.Request)
		status int
		code   string
	}{
		"good":         {func(r *http.Request) {}, 200, ""},
		"no signature": {func(r *http.Request) { r.Header.Del("Authorization") }, 403, "AccessDenied"},
		"garbage":      {func(r *http.Request) { r.Header.Set("Authorization", "AWS4-HMAC-SHA256 x") }, 400, "AuthorizationHeaderMalformed"},
		"unknown key": {func(r *http.Request) {
			r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), "KEYalice", "KEYnobody", 1))
		}, 403, "InvalidAccessKeyId"},
		"other's key": {func(r *http.Request) {
			r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), "KEYalice", "KEYbob", 1))
		}, 403, "SignatureDoesNotMatch"},
		"other path": {func(r *http.Request) { r.URL.Path = "/sig/other" }, 403, "SignatureDoesNotMatch"},
		"other region": {func(r *http.Request) {
			r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), "us-east-1", "eu-west-1", 1))
		}, 400, "<Region>us-east-1</Region>"},
		"version 2":      {func(r *http.Request) { r.Header.Set("Authorization", "AWS KEYalice:AAAAAAAAAAAAAAAAAAAAAAAAAAA=") }, 400, "InvalidRequest"},
		"wrong hash":     {func(r *http.Request) { r.Header.Set("X-Amz-Content-Sha256", "nonsense") }, 400, "InvalidArgument"},
		"unsigned token": {func(r *http.Request) { r.Header.Set("X-Amz-Security-Token", "t") }, 403, "AccessDenied"},
		"token": {func(r *http.Request) {
			r.Header.Set("X-Amz-Security-Token", "t")
			r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), "x-amz-date", "x-amz-date;x-amz-security-token", 1))
		}, 400, "InvalidToken"},
		"unsigned header": {func(r *http.Request) { r.Header.Set("X-Amz-Acl", "public-read") }, 403, "AccessDenied"},
	} {
		r := d.request("GET", "/sig/k", nil, nil)
		d.sign(r, "alice", nil, time.Now())
		c.change(r)
		if res, body := d.do(r); res.StatusCode != c.status || !strings.Contains(body, c.code) {
			t.Errorf("%s: %d %s", name, res.StatusCode, body)
		}
	}
	for _, off := range []time.Duration{-16 * time.Minute, 16 * time.Minute} {
		r := d.request("GET", "/sig/k", nil, nil)
		d.sign(r, "alice", nil, time.Now().Add(off))
		if res, body := d.do(r); res.StatusCode != 403 || !strings.Contains(body, "RequestTimeTooSkewed") {
			t.Errorf("%v: %d %s", off, res.StatusCode, body)
		}
	}
}

func TestBadBodies(t *testing.T) {
	d := openDoor(t, Config{})
	c := d.bucket("alice", "bodies")
	put(t, c, "bodies", "k", "before")
	wrong := map[string]string{"X-Amz-Content-Sha256": hex.EncodeToString(make([]byte, 32))}
	d.wantRaw("alice", "PUT", "/bodies/k", []byte("x"), wrong, 400, "XAmzContentSHA256Mismatch")
	stream := func(decoded, body string) (map[string]string, []byte) {
		return map[string]string{"X-Amz-Content-Sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER", "X-Amz-Decoded-Content-Length": decoded}, []byte(body)
	}
	for name, tc := range map[string]struct{ decoded, body, code string }{
		"short":     {"5", "3\r\nabc\r\n0\r\n\r\n", "IncompleteBody"},
		"cut":       {"5", "5\r\nabc", "IncompleteBody"},
		"long":      {"5", "6\r\nabcdef\r\n0\r\n\r\n", "IncompleteBody"},
		"malformed": {"5", "zz\r\nabcdef\r\n0\r\n\r\n", "InvalidRequest"},
		"trailer":   {"5", "5\r\nabcde\r\n0\r\nx:y\r\n\r\n", "MalformedTrailerError"},
		"no length": {"", "5\r\nabcde\r\n0\r\n\r\n", "MissingContentLength"},
	} {
		h, body := stream(tc.decoded, tc.body)
		res, got := d.raw("alice", "PUT", "/bodies/k", body, h)
		if res.StatusCode/100 != 4 || !strings.Contains(got, "<Code>"+tc.code) {
			t.Errorf("%s: %d %s", name, res.StatusCode, got)
		}
	}
	// A chunked body without a stated length.
	r := d.request("PUT", "/bodies/k", nil, nil)
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader("x")), -1
	r.Header.Set("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD")
	d.sign(r, "alice", nil, time.Now())
	if res, got := d.do(r); res.StatusCode != 411 || !strings.Contains(got, "MissingContentLength") {
		t.Errorf("%d %s", res.StatusCode, got)
	}
	// A client that leaves in the middle of its body.
	r = d.request("PUT", "/bodies/k", nil, nil)
	r.Body, r.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader("half"), failing{})), 100
	r.Header.Set("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD")
	d.sign(r, "alice", nil, time.Now())
	if _, err := http.DefaultTransport.RoundTrip(r); err == nil {
		t.Error("half a body was taken")
	}
	d.wantRaw("alice", "PUT", "/bodies/k", []byte("x"), map[string]string{"Content-Length": "6000000000"}, 200, "") // Go sends the true length
	small := openDoor(t, Config{MaxObjectBytes: 10})
	small.bucket("alice", "small")
	small.wantRaw("alice", "PUT", "/small/k", []byte("12345678901"), nil, 400, "EntityTooLarge")
	small.wantRaw("alice", "PUT", "/small/k", []byte("1234567890"), nil, 200, "")
	if got := get(t, c, "bodies", "k"); got != "x" {
		t.Errorf("holds %q", got)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

// signedStream encodes body as signed chunks, continuing r's signature.
func TestSignedChunksOfSDK(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "chunks")
	mc := d.minio("alice")
	body := bytes.Repeat([]byte("0123456789abcdef"), 20000)
	for _, size := range []int{0, 1, 65536, 65537, len(body)} {
		// minio-go signs chunks over plain HTTP, with and without trailers.
		for _, trailer := range []bool{false, true} {
			if err := mc.putStream("chunks", "k", body[:size], trailer); err != nil {
				t.Fatalf("%d bytes, trailer %v: %v", size, trailer, err)
			}
			if got := get(t, d.client("alice"), "chunks", "k"); got != string(body[:size]) {
				t.Errorf("%d bytes, trailer %v: got %d", size, trailer, len(got))
			}
			h, err := d.client("alice").HeadObject(bg, &awss3.HeadObjectInput{Bucket: aws.String("chunks"), Key: aws.String("k")})
			if err != nil || h.ContentEncoding != nil {
				t.Errorf("%v %v", h.ContentEncoding, err)
			}
		}
	}
}

func TestPresigned(t *testing.T) {
	d := openDoor(t, Config{})
	c := d.bucket("alice", "pre")
	p := awss3.NewPresignClient(c)
	in := &awss3.PutObjectInput{Bucket: aws.String("pre"), Key: aws.String("a b/ü+"), ACL: types.ObjectCannedACLPublicRead, Metadata: map[string]string{"x": "y"}}
	u, err := p.PresignPutObject(bg, in, awss3.WithPresignExpires(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	send := func(method, target string, h http.Header, body string) (*http.Response, string) {
		r, err := http.NewRequest(method, target, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range h {
			r.Header[k] = v
		}
		return d.do(r)
	}
	if res, body := send("PUT", u.URL, u.SignedHeader, "hello"); res.StatusCode != 200 {
		t.Fatalf("%d %s", res.StatusCode, body)
	}
	g, err := p.PresignGetObject(bg, &awss3.GetObjectInput{Bucket: in.Bucket, Key: in.Key, ResponseContentType: aws.String("text/z")})
	if err != nil {
		t.Fatal(err)
	}
	res, body := send("GET", g.URL, nil, "")
	if res.StatusCode != 200 || body != "hello" || res.Header.Get("Content-Type") != "text/z" || res.Header.Get("X-Amz-Meta-X") != "y" {
		t.Errorf("%d %s %v", res.StatusCode, body, res.Header)
	}
	if res, body := send("GET", g.URL+"&x-amz-acl=private", nil, ""); res.StatusCode != 403 || !strings.Contains(body, "SignatureDoesNotMatch") {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	if res, body := send("PUT", g.URL, nil, ""); res.StatusCode != 403 {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	// x-amz- parameters of the URL are headers: the ACL made it public.
	d.wantRaw("", "GET", "/pre/a%20b/%C3%BC+", nil, nil, 200, "hello")
	d.wantRaw("", "GET", "/pre/a%20b/%C3%BC+?response-content-type=x", nil, nil, 400, "InvalidRequest")
}

// Presigned by botocore itself, whatever it signs with, if it is installed.
// TestUnknownQuery: reads ignore parameters that nobody knows, with a value and without, and
// Version 4 signs them. Changes do so only with a value.
func TestUnknownQuery(t *testing.T) {
	d := openDoor(t, Config{V2: sigv4.V2All})
	d.bucket("alice", "unknown")
	d.wantRaw("alice", "PUT", "/unknown/k", []byte("hello"), nil, 200, "")
	d.wantRaw("alice", "PUT", "/unknown/all", []byte("hello"), map[string]string{"X-Amz-Acl": "public-read"}, 200, "")
	date, expires := time.Now().UTC().Format(http.TimeFormat), fmt.Sprint(time.Now().Add(time.Minute).Unix())
	for _, query := range []string{"123", "123=", "v=1", "&", "=", "a%26acl", "1690000000&x=y", "response-content-type&123", "a;b", "v=1;2"} {
		for path, says := range map[string]string{"/unknown/k": "hello", "/unknown": "<ListBucketResult", "/": "<ListAllMyBucketsResult"} {
			d.wantRaw("alice", "GET", path+"?"+query, nil, nil, 200, says)
			if path != "/" {
				d.wantRaw("alice", "HEAD", path+"?"+query, nil, nil, 200, "")
			}
			d.wantRaw("", "GET", d.presign("alice", "GET", path+"?"+query), nil, nil, 200, says)
			d.wantRaw("", "GET", d.presign("alice", "GET", path)+"&not-signed", nil, nil, 403, "SignatureDoesNotMatch")
			sub := "" // what Version 2 signs of them
			if strings.HasPrefix(query, "response-") {
				sub = "?response-content-type"
			}
			mac := macOfV2("alice", "GET\n\n\n"+expires+"\n"+path+sub)
			d.wantRaw("", "GET", path+"?AWSAccessKeyId=KEYalice&Expires="+expires+"&Signature="+url.QueryEscape(mac)+"&"+query, nil, nil, 200, says)
			mac = macOfV2("alice", "GET\n\n\n"+date+"\n"+path+sub)
			d.wantRaw("", "GET", path+"?"+query, nil, map[string]string{"Date": date, "Authorization": "AWS KEYalice:" + mac}, 200, says)
		}
	}
	d.wantRaw("", "GET", "/unknown/all?123", nil, nil, 200, "hello")
	d.wantRaw("", "GET", "/unknown/k?123", nil, nil, 403, "AccessDenied")
	d.wantRaw("alice", "GET", "/unknown/none?123", nil, nil, 404, "NoSuchKey")
	d.wantRaw("alice", "PUT", "/unknown/k?v=1", []byte("changed"), nil, 200, "")
	for _, method := range []string{"PUT", "DELETE"} {
		d.wantRaw("alice", method, "/unknown/k?123", nil, nil, 501, method+" ?123 is not implemented")
	}
	d.wantRaw("alice", "GET", "/unknown/k", nil, nil, 200, "changed")
}

func TestPresignedByAwsCli(t *testing.T) {
	aws, err := exec.LookPath("aws")
	if err != nil {
		t.Skip("no aws command")
	}
	d := openDoor(t, Config{})
	put(t, d.bucket("alice", "pre"), "pre", "k e+y", "hello")
	cmd := exec.Command(aws, "--endpoint-url", d.url, "s3", "presign", "s3://pre/k e+y")
	cmd.Env = awsEnv("alice")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v %s", err, out)
	}
	u := strings.TrimSpace(string(out))
	res, err := http.Get(u)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	if string(body) != "hello" {
		t.Errorf("%s: %s", u, body)
	}
}

func TestACLs(t *testing.T) {
	d := openDoor(t, Config{})
	alice := d.bucket("alice", "acl")
	bob, anyone := d.client("bob"), d.client("")
	put(t, alice, "acl", "k", "v")
	b, k := aws.String("acl"), aws.String("k")
	// rights returns what a client can do: list, read, write.
	rights := func(c *awss3.Client) string {
		s := ""
		if _, err := c.ListObjectsV2(bg, &awss3.ListObjectsV2Input{Bucket: b}); err == nil {
			s += "l"
		}
		if o, err := c.GetObject(bg, &awss3.GetObjectInput{Bucket: b, Key: k}); err == nil {
			o.Body.Close()
			s += "r"
		}
		if _, err := c.PutObject(bg, &awss3.PutObjectInput{Bucket: b, Key: aws.String("w"), Body: strings.NewReader("w")}); err == nil {
			s += "w"
		}
		if _, err := c.GetBucketAcl(bg, &awss3.GetBucketAclInput{Bucket: b}); err == nil {
			s += "a"
		}
		return s
	}
	grant := func(permission types.Permission, who types.Grantee) *types.AccessControlPolicy {
		return &types.AccessControlPolicy{Owner: &types.Owner{ID: aws.String("alice")}, Grants: []types.Grant{{Grantee: &who, Permission: permission}}}
	}
	toBob := types.Grantee{Type: types.TypeCanonicalUser, ID: aws.String("bob")}
	for _, c := range []struct {
		name         string
		in           awss3.PutBucketAclInput
		bob, anyone_ string // a bucket's grants never read objects
	}{
		{"private", awss3.PutBucketAclInput{ACL: types.BucketCannedACLPrivate}, "", ""},
		{"public-read", awss3.PutBucketAclInput{ACL: types.BucketCannedACLPublicRead}, "l", "l"},
		{"public-read-write", awss3.PutBucketAclInput{ACL: types.BucketCannedACLPublicReadWrite}, "lw", "lw"},
		{"authenticated-read", awss3.PutBucketAclInput{ACL: types.BucketCannedACLAuthenticatedRead}, "l", ""},
		{"grant header", awss3.PutBucketAclInput{GrantRead: aws.String(`id="bob"`)}, "l", ""},
		{"two grant headers", awss3.PutBucketAclInput{GrantWrite: aws.String(`id=bob`), GrantRead: aws.String(`uri="` + groupAll + `"`)}, "lw", "l"},
		{"grant XML", awss3.PutBucketAclInput{AccessControlPolicy: grant(types.PermissionWrite, toBob)}, "w", ""},
		{"full control", awss3.PutBucketAclInput{AccessControlPolicy: grant(types.PermissionFullControl, toBob)}, "lwa", ""},
		{"read ACP", awss3.PutBucketAclInput{AccessControlPolicy: grant(types.PermissionReadAcp, toBob)}, "a", ""},
		{"group XML", awss3.PutBucketAclInput{AccessControlPolicy: grant(types.PermissionRead, types.Grantee{Type: types.TypeGroup, URI: aws.String(groupAuthenticated)})}, "l", ""},
	} {
		c.in.Bucket = b
		if _, err := alice.PutBucketAcl(bg, &c.in); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for who, want := range map[*awss3.Client]string{alice: "lrwa", d.client("root"): "lrwa", bob: c.bob, anyone: c.anyone_} {
			if got := rights(who); got != want {
				t.Errorf("%s: rights %q, want %q (bob %q)", c.name, got, want, c.bob)
			}
		}
	}
	out, err := alice.GetBucketAcl(bg, &awss3.GetBucketAclInput{Bucket: b})
	if err != nil || *out.Owner.ID != d.userID("alice") || *out.Owner.DisplayName != "alice" || len(out.Grants) != 1 || *out.Grants[0].Grantee.URI != groupAuthenticated {
		t.Errorf("%+v %v", out, err)
	}
	_, err = bob.PutBucketAcl(bg, &awss3.PutBucketAclInput{Bucket: b, ACL: types.BucketCannedACLPublicRead})
	wantCode(t, "bob's ACL", err, "AccessDenied")
	_, err = alice.PutBucketAcl(bg, &awss3.PutBucketAclInput{Bucket: b, GrantRead: aws.String("id=nobody")})
	wantCode(t, "unknown grantee", err, "InvalidArgument")
	_, err = alice.PutBucketAcl(bg, &awss3.PutBucketAclInput{Bucket: b, GrantRead: aws.String("emailAddress=a@b")})
	wantCode(t, "email", err, "UnresolvableGrantByEmailAddress")
	_, err = alice.PutBucketAcl(bg, &awss3.PutBucketAclInput{Bucket: b, ACL: "nonsense"})
	wantCode(t, "canned", err, "InvalidArgument")
	_, err = alice.PutBucketAcl(bg, &awss3.PutBucketAclInput{Bucket: b, ACL: types.BucketCannedACLPrivate, GrantRead: aws.String("id=bob")})
	wantCode(t, "both", err, "InvalidRequest")
	d.wantRaw("alice", "PUT", "/acl?acl", []byte("<x/>"), nil, 400, "MalformedACLError")

	// An object's own ACL.
	if _, err := alice.PutBucketAcl(bg, &awss3.PutBucketAclInput{Bucket: b, ACL: types.BucketCannedACLPrivate}); err != nil {
		t.Fatal(err)
	}
	_, err = anyone.GetObject(bg, &awss3.GetObjectInput{Bucket: b, Key: aws.String("missing")})
	wantCode(t, "missing, to strangers", err, "AccessDenied")
	_, err = alice.PutObjectAcl(bg, &awss3.PutObjectAclInput{Bucket: b, Key: k, ACL: types.ObjectCannedACLPublicRead})
	wantCode(t, "object ACL", err, "")
	if got := rights(anyone); got != "r" {
		t.Errorf("public object: %q", got)
	}
	oa, err := alice.GetObjectAcl(bg, &awss3.GetObjectAclInput{Bucket: b, Key: k})
	if err != nil || len(oa.Grants) != 2 {
		t.Errorf("%+v %v", oa, err)
	}
	_, err = bob.PutObjectAcl(bg, &awss3.PutObjectAclInput{Bucket: b, Key: k, ACL: types.ObjectCannedACLPublicRead})
	wantCode(t, "bob's object ACL", err, "AccessDenied")
	d.wantRaw("", "GET", "/acl/k", nil, nil, 200, "v")
	for _, who := range []string{"alice", d.userID("alice"), d.account("alice")} {
		d.wantRaw("alice", "GET", "/acl/k", nil, map[string]string{"X-Amz-Expected-Bucket-Owner": who}, 200, "v")
	}
	for _, who := range []string{"bob", d.userID("bob"), d.account("bob"), "000000000000", "0"} {
		d.wantRaw("alice", "GET", "/acl/k", nil, map[string]string{"X-Amz-Expected-Bucket-Owner": who}, 403, "AccessDenied")
	}
}

// TestGrantsHoldIDs: a grant is a user's, whatever the name, and goes to nobody
// else.
func TestGrantsHoldIDs(t *testing.T) {
	d := openDoor(t, Config{})
	alice := d.bucket("alice", "acl")
	b := aws.String("acl")
	bobID := d.userID("bob")
	for _, who := range []string{"bob", bobID} {
		if _, err := alice.PutBucketAcl(bg, &awss3.PutBucketAclInput{Bucket: b, GrantRead: aws.String("id=" + who)}); err != nil {
			t.Fatal(err)
		}
		out, err := alice.GetBucketAcl(bg, &awss3.GetBucketAclInput{Bucket: b})
		if err != nil || len(out.Grants) != 1 || *out.Grants[0].Grantee.ID != bobID || *out.Grants[0].Grantee.DisplayName != "bob" {
			t.Errorf("%+v %v", out, err)
		}
		// What was read can be written back.
		_, err = alice.PutBucketAcl(bg, &awss3.PutBucketAclInput{Bucket: b,
			AccessControlPolicy: &types.AccessControlPolicy{Owner: out.Owner, Grants: out.Grants}})
		wantCode(t, "written back", err, "")
	}
	if _, err := d.fs.Users().Rename(bg, "bob", "robert"); err != nil {
		t.Fatal(err)
	}
	second := users.User{Name: "bob", UID: 1009, Keys: []users.AccessKey{{ID: "KEYsecond", Secret: secretOf("second")}}}
	if err := d.fs.Users().Add(bg, second); err != nil {
		t.Fatal(err)
	}
	d.wantRaw("bob", "GET", "/acl", nil, nil, 200, "ListBucketResult")
	d.wantRaw("second", "GET", "/acl", nil, nil, 403, "AccessDenied")
	if err := d.fs.Users().Remove(bg, "robert"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.fs.Users().Rename(bg, "bob", "robert"); err != nil {
		t.Fatal(err)
	}
	d.wantRaw("second", "GET", "/acl", nil, nil, 403, "AccessDenied")
	d.wantRaw("alice", "GET", "/acl?acl", nil, nil, 200, "<ID>"+bobID+"</ID></Grantee>")
}

func TestHosts(t *testing.T) {
	d := openDoor(t, Config{Domains: []string{"s3.test"}})
	put(t, d.bucket("alice", "www.example.org"), "www.example.org", "b/k", "bare host")
	put(t, d.bucket("alice", "buck"), "buck", "k", "virtual")
	for _, c := range []struct {
		host, target string
		status       int
		text         string
	}{
		{"s3.test", "/buck/k", 200, "virtual"}, {"buck.s3.test", "/k", 200, "virtual"}, {"BUCK.s3.test:9000", "/k", 200, "virtual"},
		{"www.example.org", "/b/k", 200, "bare host"}, {"www.example.org.s3.test", "/b/k", 200, "bare host"},
		{"buck.s3.test", "/", 200, "<Name>buck</Name>"}, {"buck.s3.test", "/?location", 200, "LocationConstraint"},
		{"other.example.org", "/k", 404, "NoSuchBucket"}, {"s3.test", "/", 200, "<Name>www.example.org</Name>"},
		{"buck.s3.test", "//k", 404, "<Key>/k</Key>"}, {"localhost", "/buck/k", 200, "virtual"}, {"gateway", "/buck/k", 200, "virtual"},
	} {
		d.wantRaw("alice", "GET", c.target, nil, map[string]string{"Host": c.host}, c.status, c.text)
	}
	bare := openDoor(t, Config{BareHosts: true})
	put(t, bare.bucket("alice", "www.example.org"), "www.example.org", "b/k", "bare host")
	bare.wantRaw("alice", "GET", "/b/k", nil, map[string]string{"Host": "www.example.org"}, 200, "bare host")
	bare.wantRaw("alice", "GET", "/www.example.org/b/k", nil, map[string]string{"Host": "my.server.test:9000"}, 404, "NoSuchBucket")
}

// Who makes a bucket with the name by which others reach the server gets none
// of their requests.
func TestHostsAreNotTakenOver(t *testing.T) {
	d := openDoor(t, Config{})
	put(t, d.bucket("alice", "mine"), "mine", "k", "alice's")
	taken := d.bucket("bob", "objects.corp.example")
	put(t, taken, "objects.corp.example", "mine/k", "bob's forgery")
	corp := map[string]string{"Host": "objects.corp.example"}
	d.wantRaw("alice", "GET", "/mine/k", nil, corp, 200, "alice's")
	d.wantRaw("alice", "PUT", "/mine/new", []byte("secret"), corp, 200, "")
	d.wantRaw("alice", "GET", "/mine/new", nil, nil, 200, "secret")
	d.wantRaw("bob", "GET", "/objects.corp.example/mine/k", nil, nil, 200, "bob's forgery")
}

// form builds a browser's form.
func form(fields [][2]string, file string) (string, []byte) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, f := range fields {
		_ = w.WriteField(f[0], f[1])
	}
	fw, _ := w.CreateFormFile("file", "photo.jpg")
	_, _ = io.WriteString(fw, file)
	_ = w.WriteField("submit", "Upload")
	_ = w.Close()
	return w.FormDataContentType(), b.Bytes()
}

func TestPostObject(t *testing.T) {
	d := openDoor(t, Config{})
	c := d.bucket("alice", "post")
	p := awss3.NewPresignClient(c)
	signed := func(key string, conditions ...any) [][2]string {
		out, err := p.PresignPostObject(bg, &awss3.PutObjectInput{Bucket: aws.String("post"), Key: &key},
			func(o *awss3.PresignPostOptions) { o.Conditions = conditions; o.Expires = time.Minute })
		if err != nil {
			t.Fatal(err)
		}
		var fields [][2]string
		for k, v := range out.Values {
			fields = append(fields, [2]string{k, v})
		}
		return fields
	}
	post := func(name string, fields [][2]string, file string, status int, text string) *http.Response {
		t.Helper()
		kind, body := form(fields, file)
		res, got := d.raw("", "POST", "/post", body, map[string]string{"Content-Type": kind})
		if res.StatusCode != status || !strings.Contains(got, text) {
			t.Errorf("%s: %d %s; want %d %s", name, res.StatusCode, got, status, text)
		}
		return res
	}
	post("plain", signed("up/k"), "hello", 204, "")
	if get(t, c, "post", "up/k") != "hello" {
		t.Error("wrong content")
	}
	post("file name", signed("up/${filename}", []any{"starts-with", "$key", "up/"}), "hello", 204, "")
	if get(t, c, "post", "up/photo.jpg") != "hello" {
		t.Error("wrong content")
	}
	more := append(signed("k", []any{"starts-with", "$Content-Type", "text/"}, map[string]string{"success_action_status": "201"}, map[string]string{"x-amz-meta-a": "b"}),
		[2]string{"Content-Type", "text/plain"}, [2]string{"success_action_status", "201"}, [2]string{"x-amz-meta-a", "b"})
	post("fields", more, "hello", 201, "<PostResponse><Location>"+d.url+"/post/k</Location><Bucket>post</Bucket><Key>k</Key>")
	h, err := c.HeadObject(bg, &awss3.HeadObjectInput{Bucket: aws.String("post"), Key: aws.String("k")})
	if err != nil || *h.ContentType != "text/plain" || h.Metadata["a"] != "b" {
		t.Errorf("%+v %v", h, err)
	}
	redirect := append(signed("k", []any{"starts-with", "$success_action_redirect", "http://"}), [2]string{"success_action_redirect", "http://x.test/done?q=1"})
	if res := post("redirect", redirect, "x", 303, ""); !strings.HasPrefix(res.Header.Get("Location"), "http://x.test/done?q=1&bucket=post&key=k&etag=%22") {
		t.Errorf("%v", res.Header)
	}
	limit := []any{"content-length-range", 2, 4}
	post("too small", signed("small", limit), "1", 400, "EntityTooSmall")
	post("too large", signed("small", limit), "12345", 400, "EntityTooLarge")
	post("fits", signed("small", limit), "1234", 204, "")
	post("extra field", append(signed("k"), [2]string{"acl", "public-read"}), "x", 403, "Extra input fields: acl")
	broken := signed("k")
	for i := range broken {
		if strings.EqualFold(broken[i][0], "x-amz-signature") {
			broken[i][1] = strings.Repeat("0", 64)
		}
	}
	post("signature", broken, "x", 403, "SignatureDoesNotMatch")
	post("anonymous", [][2]string{{"key", "k"}}, "x", 403, "AccessDenied")
	post("no key", nil, "x", 400, "must contain a field named")
	post("long fields", [][2]string{{"key", "k"}, {"x-amz-meta-a", strings.Repeat("x", maxFormBytes)}}, "x", 400, "MaxPostPreDataLengthExceeded")
	d.wantRaw("", "POST", "/post", []byte("x"), nil, 412, "multipart/form-data")
	kind, body := form([][2]string{{"key", "k"}}, "x")
	d.wantRaw("", "POST", "/post", body[:bytes.Index(body, []byte(`name="key"`))+15], map[string]string{"Content-Type": kind}, 400, "MalformedPOSTRequest")
	if _, err := c.PutBucketAcl(bg, &awss3.PutBucketAclInput{Bucket: aws.String("post"), ACL: types.BucketCannedACLPublicReadWrite}); err != nil {
		t.Fatal(err)
	}
	post("public bucket", [][2]string{{"key", "anon"}}, "from anyone", 204, "")
	if get(t, c, "post", "anon") != "from anyone" {
		t.Error("wrong content")
	}
	kind, body = form([][2]string{{"key", "cut"}}, strings.Repeat("long", 1000))
	d.wantRaw("", "POST", "/post", body[:2000], map[string]string{"Content-Type": kind}, 400, "IncompleteBody")
	_, err = c.HeadObject(bg, &awss3.HeadObjectInput{Bucket: aws.String("post"), Key: aws.String("cut")})
	wantCode(t, "cut form", err, "NotFound")
}

func awsEnv(user string) []string {
	return []string{"AWS_ACCESS_KEY_ID=KEY" + user, "AWS_SECRET_ACCESS_KEY=" + secretOf(user), "AWS_DEFAULT_REGION=us-east-1", "HOME=/nonexistent", "PATH=" + pathEnv(), "AWS_EC2_METADATA_DISABLED=true"}
}

func escape(s string) string { return (&url.URL{Path: s}).EscapedPath() }
