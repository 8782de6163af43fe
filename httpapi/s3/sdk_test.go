package s3

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/httpapi"
)

func TestBuckets(t *testing.T) {
	d := openDoor(t, Config{})
	root, alice, bob := d.client("root"), d.client("alice"), d.client("bob")
	create := func(c *awss3.Client, name string) error {
		_, err := c.CreateBucket(bg, &awss3.CreateBucketInput{Bucket: &name})
		return err
	}
	wantCode(t, "create", create(alice, "abc"), "")
	wantCode(t, "create again", create(alice, "abc"), "BucketAlreadyOwnedByYou")
	wantCode(t, "create another's", create(bob, "abc"), "BucketAlreadyExists")
	wantCode(t, "create", create(bob, "bob.s-bucket_1"), "")
	d.wantRaw("", "PUT", "/anonymous", nil, nil, 403, "AccessDenied")
	for _, bad := range []string{"ab", "Upper", "-abc", "abc-", "192.168.1.1", strings.Repeat("a", 256), "a%20b", "a%2Fb"} {
		if bad == "a%2Fb" { // a slash ends the bucket: this is an object of the bucket "a"
			d.wantRaw("alice", "PUT", "/"+bad, nil, nil, 404, "NoSuchBucket")
			continue
		}
		d.wantRaw("alice", "PUT", "/"+bad, nil, nil, 400, "InvalidBucketName")
	}
	for user, want := range map[*awss3.Client][]string{root: {"abc", "bob.s-bucket_1"}, alice: {"abc"}, bob: {"bob.s-bucket_1"}} {
		out, err := user.ListBuckets(bg, &awss3.ListBucketsInput{})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, b := range out.Buckets {
			names = append(names, *b.Name)
			if time.Since(*b.CreationDate) > time.Hour {
				t.Errorf("created %v", b.CreationDate)
			}
		}
		if !reflect.DeepEqual(names, want) {
			t.Errorf("buckets %v, want %v", names, want)
		}
	}
	d.wantRaw("", "GET", "/", nil, nil, 403, "AccessDenied")
	out, err := root.ListBuckets(bg, &awss3.ListBucketsInput{MaxBuckets: aws.Int32(1)})
	if err != nil || len(out.Buckets) != 1 || out.ContinuationToken == nil {
		t.Fatalf("%+v %v", out, err)
	}
	out, err = root.ListBuckets(bg, &awss3.ListBucketsInput{MaxBuckets: aws.Int32(1), ContinuationToken: out.ContinuationToken})
	if err != nil || len(out.Buckets) != 1 || *out.Buckets[0].Name != "bob.s-bucket_1" || out.ContinuationToken != nil {
		t.Fatalf("%+v %v", out, err)
	}
	_, err = alice.HeadBucket(bg, &awss3.HeadBucketInput{Bucket: aws.String("abc")})
	wantCode(t, "head", err, "")
	_, err = alice.HeadBucket(bg, &awss3.HeadBucketInput{Bucket: aws.String("missing")})
	wantCode(t, "head", err, "NotFound")
	_, err = bob.HeadBucket(bg, &awss3.HeadBucketInput{Bucket: aws.String("abc")})
	wantCode(t, "head", err, "Forbidden")
	loc, err := alice.GetBucketLocation(bg, &awss3.GetBucketLocationInput{Bucket: aws.String("abc")})
	if err != nil || loc.LocationConstraint != "" {
		t.Errorf("%v %v", loc, err)
	}
	del := func(c *awss3.Client, name string) error {
		_, err := c.DeleteBucket(bg, &awss3.DeleteBucketInput{Bucket: &name})
		return err
	}
	put(t, alice, "abc", "k", "v")
	wantCode(t, "delete full", del(alice, "abc"), "BucketNotEmpty")
	wantCode(t, "delete another's", del(bob, "abc"), "AccessDenied")
	_, err = alice.DeleteObject(bg, &awss3.DeleteObjectInput{Bucket: aws.String("abc"), Key: aws.String("k")})
	wantCode(t, "delete object", err, "")
	wantCode(t, "delete", del(alice, "abc"), "")
	wantCode(t, "delete missing", del(alice, "abc"), "NoSuchBucket")
	_, err = alice.ListObjects(bg, &awss3.ListObjectsInput{Bucket: aws.String("abc")})
	wantCode(t, "list missing", err, "NoSuchBucket")
}

// The keys that S3 allows and a file system would not.
func oddKeys() []string {
	return []string{
		"a", "a/b", "a//b", "/a", "a/../b", "./x", "..", "x/", "x/y/", "//", "sp ace+plus", "ünï/cödé €😀", "%41", "q?x=1&y#z", "tab\tnl\n",
		"~!@$^*()_-=[]{}|;:',<>`\"\\", strings.Repeat("n", 1000), strings.Repeat("d/", 511) + "e", ".ogw~x", "quote\"amp&lt<",
	}
}

func TestOddKeys(t *testing.T) {
	d := openDoor(t, Config{})
	c := d.bucket("alice", "odd")
	keys := oddKeys()
	for i, k := range keys {
		out := put(t, c, "odd", k, fmt.Sprintf("body %d of %s", i, k))
		sum := md5.Sum([]byte(fmt.Sprintf("body %d of %s", i, k)))
		if *out.ETag != `"`+hex.EncodeToString(sum[:])+`"` {
			t.Errorf("%q: ETag %s", k, *out.ETag)
		}
	}
	for i, k := range keys {
		if got := get(t, c, "odd", k); got != fmt.Sprintf("body %d of %s", i, k) {
			t.Errorf("%q holds %q", k, got)
		}
	}
	sorted := append([]string(nil), keys...)
	sort.Strings(sorted)
	if got := listAll(t, c, "odd", 3); !reflect.DeepEqual(got, sorted) {
		t.Errorf("listed %q\nwant   %q", got, sorted)
	}
	var ids []types.ObjectIdentifier
	for i := range keys {
		ids = append(ids, types.ObjectIdentifier{Key: &keys[i]})
	}
	ids = append(ids, types.ObjectIdentifier{Key: aws.String("never was")})
	out, err := c.DeleteObjects(bg, &awss3.DeleteObjectsInput{Bucket: aws.String("odd"), Delete: &types.Delete{Objects: ids}})
	if err != nil || len(out.Errors) > 0 || len(out.Deleted) != len(ids) {
		t.Errorf("%+v %v", out, err)
	}
	if got := listAll(t, c, "odd", 1000); len(got) != 0 {
		t.Errorf("left: %q", got)
	}
	_, err = c.PutObject(bg, &awss3.PutObjectInput{Bucket: aws.String("odd"), Key: aws.String(strings.Repeat("k", 1025))})
	wantCode(t, "1025 bytes", err, "KeyTooLongError")
}

// listAll lists with both versions, page by page, and wants the same of both.
func listAll(t *testing.T, c *awss3.Client, bucket string, page int32) []string {
	t.Helper()
	var v1, v2 []string
	p := awss3.NewListObjectsV2Paginator(c, &awss3.ListObjectsV2Input{Bucket: &bucket, MaxKeys: &page, EncodingType: types.EncodingTypeUrl})
	for p.HasMorePages() {
		out, err := p.NextPage(bg)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range out.Contents {
			v2 = append(v2, unquote(t, *o.Key))
		}
		if int(*out.KeyCount) != len(out.Contents) || len(out.Contents) > int(page) {
			t.Fatalf("page of %d with KeyCount %d", len(out.Contents), *out.KeyCount)
		}
	}
	marker := ""
	for {
		out, err := c.ListObjects(bg, &awss3.ListObjectsInput{Bucket: &bucket, MaxKeys: &page, Marker: &marker, EncodingType: types.EncodingTypeUrl})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range out.Contents {
			v1 = append(v1, unquote(t, *o.Key))
		}
		if !*out.IsTruncated {
			break
		}
		marker = v1[len(v1)-1]
	}
	if !reflect.DeepEqual(v1, v2) {
		t.Errorf("version 1 lists %q\nversion 2 lists %q", v1, v2)
	}
	return v2
}

func unquote(t *testing.T, s string) string {
	t.Helper()
	r, err := http.NewRequest("GET", "http://x/"+s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r.URL.Path[1:]
}

func TestListing(t *testing.T) {
	d := openDoor(t, Config{})
	c := d.bucket("alice", "list")
	for _, k := range []string{"a", "b/1", "b/2", "b/c/3", "b0", "d/", "d/x", "e+f", "z"} {
		put(t, c, "list", k, k)
	}
	type result struct {
		keys, prefixes []string
	}
	list := func(in awss3.ListObjectsV2Input, page int32) result {
		in.Bucket, in.MaxKeys = aws.String("list"), &page
		var r result
		p := awss3.NewListObjectsV2Paginator(c, &in)
		for p.HasMorePages() {
			out, err := p.NextPage(bg)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range out.Contents {
				r.keys = append(r.keys, *o.Key)
			}
			for _, o := range out.CommonPrefixes {
				r.prefixes = append(r.prefixes, *o.Prefix)
			}
		}
		return r
	}
	slash := aws.String("/")
	for name, tc := range map[string]struct {
		in   awss3.ListObjectsV2Input
		want result
	}{
		"all":           {awss3.ListObjectsV2Input{}, result{[]string{"a", "b/1", "b/2", "b/c/3", "b0", "d/", "d/x", "e+f", "z"}, nil}},
		"delimiter":     {awss3.ListObjectsV2Input{Delimiter: slash}, result{[]string{"a", "b0", "e+f", "z"}, []string{"b/", "d/"}}},
		"folder":        {awss3.ListObjectsV2Input{Delimiter: slash, Prefix: aws.String("b/")}, result{[]string{"b/1", "b/2"}, []string{"b/c/"}}},
		"marked folder": {awss3.ListObjectsV2Input{Delimiter: slash, Prefix: aws.String("d/")}, result{[]string{"d/", "d/x"}, nil}},
		"prefix":        {awss3.ListObjectsV2Input{Prefix: aws.String("b")}, result{[]string{"b/1", "b/2", "b/c/3", "b0"}, nil}},
		"start after":   {awss3.ListObjectsV2Input{StartAfter: aws.String("b/2")}, result{[]string{"b/c/3", "b0", "d/", "d/x", "e+f", "z"}, nil}},
		"other":         {awss3.ListObjectsV2Input{Delimiter: aws.String("+")}, result{[]string{"a", "b/1", "b/2", "b/c/3", "b0", "d/", "d/x", "z"}, []string{"e+"}}},
		"nothing":       {awss3.ListObjectsV2Input{Prefix: aws.String("nope")}, result{}},
	} {
		for _, page := range []int32{1, 2, 3, 1000} {
			if got := list(tc.in, page); !reflect.DeepEqual(got, tc.want) {
				t.Errorf("%s in pages of %d: %+v, want %+v", name, page, got, tc.want)
			}
		}
	}
	// Version 1 goes on from NextMarker, which may be a common prefix.
	var got []string
	for marker := ""; ; {
		out, err := c.ListObjects(bg, &awss3.ListObjectsInput{Bucket: aws.String("list"), Delimiter: slash, MaxKeys: aws.Int32(1), Marker: &marker})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range out.Contents {
			got = append(got, *o.Key)
			if *o.Owner.DisplayName != "alice" || *o.Owner.ID != d.userID("alice") {
				t.Errorf("owner %s", *o.Owner.ID)
			}
		}
		for _, o := range out.CommonPrefixes {
			got = append(got, *o.Prefix)
		}
		if !*out.IsTruncated {
			break
		}
		marker = *out.NextMarker
	}
	if want := []string{"a", "b/", "b0", "d/", "e+f", "z"}; !reflect.DeepEqual(got, want) {
		t.Errorf("version 1: %q, want %q", got, want)
	}
	out, err := c.ListObjectsV2(bg, &awss3.ListObjectsV2Input{Bucket: aws.String("list"), FetchOwner: aws.Bool(true), MaxKeys: aws.Int32(1)})
	if err != nil || *out.Contents[0].Owner.ID != d.userID("alice") || *out.Contents[0].Size != 1 || *out.Contents[0].ETag != `"0cc175b9c0f1b6a831c399e269772661"` {
		t.Errorf("%+v %v", out.Contents, err)
	}
	_, body := d.wantRaw("alice", "GET", "/list?list-type=2&max-keys=0", nil, nil, 200, "<KeyCount>0</KeyCount>")
	if strings.Contains(body, "<IsTruncated>true") {
		t.Error("a page of nothing is truncated")
	}
	d.wantRaw("alice", "GET", "/list?max-keys=-1", nil, nil, 400, "InvalidArgument")
	d.wantRaw("alice", "GET", "/list?max-keys=x", nil, nil, 400, "InvalidArgument")
	d.wantRaw("alice", "GET", "/list?max-keys=5000", nil, nil, 200, "<MaxKeys>1000</MaxKeys>")
	d.wantRaw("alice", "GET", "/list?encoding-type=base64", nil, nil, 400, "InvalidArgument")
	d.wantRaw("alice", "GET", "/list?list-type=3", nil, nil, 400, "InvalidArgument")
	d.wantRaw("alice", "GET", "/list?list-type=2&continuation-token=junk", nil, nil, 400, "InvalidArgument")
	d.wantRaw("alice", "GET", "/list?encoding-type=url&prefix=e%2B", nil, nil, 200, "<Key>e%2Bf</Key>")
}

func TestObjectMetadata(t *testing.T) {
	d := openDoor(t, Config{})
	c := d.bucket("alice", "meta")
	b, k := aws.String("meta"), aws.String("k")
	_, err := c.PutObject(bg, &awss3.PutObjectInput{
		Bucket: b, Key: k, Body: strings.NewReader("hello"), ContentType: aws.String("text/x-test; charset=utf-8"),
		CacheControl: aws.String("max-age=3"), ContentDisposition: aws.String("attachment"), ContentEncoding: aws.String("gzip"),
		ContentLanguage: aws.String("de"), Expires: aws.Time(time.Unix(2e9, 0)), Metadata: map[string]string{"One": "eins", "two": "zwei"},
		Tagging: aws.String("a=1&b=2"), WebsiteRedirectLocation: aws.String("/x"), StorageClass: types.StorageClassReducedRedundancy,
	})
	if err != nil {
		t.Fatal(err)
	}
	h, err := c.HeadObject(bg, &awss3.HeadObjectInput{Bucket: b, Key: k})
	if err != nil {
		t.Fatal(err)
	}
	got := []string{*h.ContentType, *h.CacheControl, *h.ContentDisposition, *h.ContentEncoding, *h.ContentLanguage, *h.ExpiresString,
		*h.WebsiteRedirectLocation, string(h.StorageClass), *h.AcceptRanges, *h.ETag, fmt.Sprint(*h.ContentLength, *h.TagCount, h.Metadata)}
	want := []string{"text/x-test; charset=utf-8", "max-age=3", "attachment", "gzip", "de", "Wed, 18 May 2033 03:33:20 GMT",
		"/x", "REDUCED_REDUNDANCY", "bytes", `"5d41402abc4b2a76b9719d911017c592"`, "5 2 map[one:eins two:zwei]"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	o, err := c.GetObject(bg, &awss3.GetObjectInput{Bucket: b, Key: k, ResponseContentType: aws.String("text/other"), ResponseCacheControl: aws.String("no-cache")})
	if err != nil || *o.ContentType != "text/other" || *o.CacheControl != "no-cache" {
		t.Errorf("%+v %v", o, err)
	}
	o.Body.Close()
	tags, err := c.GetObjectTagging(bg, &awss3.GetObjectTaggingInput{Bucket: b, Key: k})
	if err != nil || len(tags.TagSet) != 2 || *tags.TagSet[1].Value != "2" {
		t.Errorf("%+v %v", tags, err)
	}
	_, err = c.PutObjectTagging(bg, &awss3.PutObjectTaggingInput{Bucket: b, Key: k, Tagging: &types.Tagging{TagSet: []types.Tag{{Key: aws.String("x"), Value: aws.String("y z")}}}})
	wantCode(t, "put tags", err, "")
	if tags, err = c.GetObjectTagging(bg, &awss3.GetObjectTaggingInput{Bucket: b, Key: k}); err != nil || len(tags.TagSet) != 1 || *tags.TagSet[0].Value != "y z" {
		t.Errorf("%+v %v", tags, err)
	}
	_, err = c.DeleteObjectTagging(bg, &awss3.DeleteObjectTaggingInput{Bucket: b, Key: k})
	wantCode(t, "delete tags", err, "")
	if tags, err = c.GetObjectTagging(bg, &awss3.GetObjectTaggingInput{Bucket: b, Key: k}); err != nil || len(tags.TagSet) != 0 {
		t.Errorf("%+v %v", tags, err)
	}
	_, err = c.PutObject(bg, &awss3.PutObjectInput{Bucket: b, Key: k, Metadata: map[string]string{"big": strings.Repeat("x", 2100)}})
	wantCode(t, "large metadata", err, "MetadataTooLarge")
	_, err = c.PutObject(bg, &awss3.PutObjectInput{Bucket: b, Key: k, ServerSideEncryption: types.ServerSideEncryptionAes256})
	wantCode(t, "encryption", err, "NotImplemented")
	_, err = c.PutObject(bg, &awss3.PutObjectInput{Bucket: b, Key: k, StorageClass: "SHELF"})
	wantCode(t, "class", err, "InvalidStorageClass")
	if get(t, c, "meta", "k") != "hello" {
		t.Error("a refused PUT changed the object")
	}
	put(t, c, "meta", "plain", "")
	h, err = c.HeadObject(bg, &awss3.HeadObjectInput{Bucket: b, Key: aws.String("plain")})
	if err != nil || h.ContentEncoding != nil || len(h.Metadata) > 0 || *h.ContentLength != 0 {
		t.Errorf("%+v %v", h, err)
	}
}

func TestRangesAndConditions(t *testing.T) {
	d := openDoor(t, Config{})
	c := d.bucket("alice", "cond")
	b, k := aws.String("cond"), aws.String("k")
	tag := put(t, c, "cond", "k", "0123456789").ETag
	for header, want := range map[string]string{"bytes=0-0": "0", "bytes=3-5": "345", "bytes=7-": "789", "bytes=-2": "89", "bytes=5-99": "56789"} {
		o, err := c.GetObject(bg, &awss3.GetObjectInput{Bucket: b, Key: k, Range: &header})
		if err != nil {
			t.Fatal(header, err)
		}
		got, _ := io.ReadAll(o.Body)
		if string(got) != want || !strings.HasSuffix(*o.ContentRange, "/10") {
			t.Errorf("%s: %q %s", header, got, *o.ContentRange)
		}
	}
	_, err := c.GetObject(bg, &awss3.GetObjectInput{Bucket: b, Key: k, Range: aws.String("bytes=10-")})
	wantCode(t, "range", err, "InvalidRange")
	res, _ := d.wantRaw("alice", "GET", "/cond/k", nil, map[string]string{"Range": "bytes=10-"}, 416, "<ActualObjectSize>10<")
	if res.Header.Get("Content-Range") != "bytes */10" {
		t.Errorf("%v", res.Header)
	}
	d.wantRaw("alice", "GET", "/cond/k", nil, map[string]string{"Range": "bytes=1-2,4-5"}, 200, "0123456789")
	d.wantRaw("alice", "GET", "/cond/k", nil, map[string]string{"Range": "chapters=1"}, 200, "0123456789")
	d.wantRaw("alice", "GET", "/cond/k", nil, map[string]string{"Range": "bytes=1-2", "If-Range": `"other"`}, 200, "0123456789")
	past, future := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	other := aws.String(`"other"`)
	for name, tc := range map[string]struct {
		in   awss3.GetObjectInput
		want int
	}{
		"match":              {awss3.GetObjectInput{IfMatch: tag}, 200},
		"match, not":         {awss3.GetObjectInput{IfMatch: other}, 412},
		"none match":         {awss3.GetObjectInput{IfNoneMatch: other}, 200},
		"none match, not":    {awss3.GetObjectInput{IfNoneMatch: tag}, 304},
		"modified since":     {awss3.GetObjectInput{IfModifiedSince: &past}, 200},
		"not modified since": {awss3.GetObjectInput{IfModifiedSince: &future}, 304},
		"unmodified":         {awss3.GetObjectInput{IfUnmodifiedSince: &future}, 200},
		"unmodified, not":    {awss3.GetObjectInput{IfUnmodifiedSince: &past}, 412},
		"match wins":         {awss3.GetObjectInput{IfMatch: tag, IfUnmodifiedSince: &past}, 200},
		"none match wins":    {awss3.GetObjectInput{IfNoneMatch: tag, IfModifiedSince: &past}, 304},
	} {
		tc.in.Bucket, tc.in.Key = b, k
		o, err := c.GetObject(bg, &tc.in)
		status := 200
		if err != nil {
			var re interface{ HTTPStatusCode() int }
			if !errors.As(err, &re) {
				t.Fatal(name, err)
			}
			status = re.HTTPStatusCode()
		} else {
			o.Body.Close()
		}
		if status != tc.want {
			t.Errorf("%s: %d, want %d", name, status, tc.want)
		}
	}
	res, body := d.raw("alice", "GET", "/cond/k", nil, map[string]string{"If-None-Match": *tag})
	if res.StatusCode != 304 || res.Header.Get("Etag") != *tag || res.Header.Get("Last-Modified") == "" || body != "" {
		t.Errorf("%d %v %q", res.StatusCode, res.Header, body)
	}
	_, err = c.PutObject(bg, &awss3.PutObjectInput{Bucket: b, Key: k, Body: strings.NewReader("x"), IfNoneMatch: aws.String("*")})
	wantCode(t, "create only", err, "PreconditionFailed")
	_, err = c.PutObject(bg, &awss3.PutObjectInput{Bucket: b, Key: aws.String("new"), Body: strings.NewReader("x"), IfNoneMatch: aws.String("*")})
	wantCode(t, "create only", err, "")
	_, err = c.PutObject(bg, &awss3.PutObjectInput{Bucket: b, Key: k, Body: strings.NewReader("x"), IfMatch: other})
	wantCode(t, "replace only", err, "PreconditionFailed")
	_, err = c.DeleteObject(bg, &awss3.DeleteObjectInput{Bucket: b, Key: k, IfMatch: other})
	wantCode(t, "delete only", err, "PreconditionFailed")
	if get(t, c, "cond", "k") != "0123456789" {
		t.Error("a refused write changed the object")
	}
	_, err = c.PutObject(bg, &awss3.PutObjectInput{Bucket: b, Key: k, Body: strings.NewReader("x"), IfMatch: tag})
	wantCode(t, "replace", err, "")
	_, err = c.GetObject(bg, &awss3.GetObjectInput{Bucket: b, Key: aws.String("missing")})
	wantCode(t, "missing", err, "NoSuchKey")
	_, err = c.GetObject(bg, &awss3.GetObjectInput{Bucket: aws.String("missing"), Key: k})
	wantCode(t, "missing bucket", err, "NoSuchBucket")
	_, err = c.GetObject(bg, &awss3.GetObjectInput{Bucket: b, Key: k, VersionId: aws.String("v1")})
	wantCode(t, "version", err, "NoSuchVersion")
	_, err = c.GetObject(bg, &awss3.GetObjectInput{Bucket: b, Key: k, PartNumber: aws.Int32(2)})
	wantCode(t, "part", err, "InvalidPartNumber")
}

// TestNotModified: 304 has what 200 says to caches, and nothing of the content that it does
// not send (RFC 9110, section 15.4.5).
func TestNotModified(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "cond")
	said := map[string]string{"Cache-Control": "max-age=60", "Expires": "Thu, 01 Dec 2094 16:00:00 GMT", "Content-Language": "de", "X-Amz-Meta-A": "b", "Content-Type": "text/a"}
	d.wantRaw("alice", "PUT", "/cond/cached", []byte("cached"), said, 200, "")
	cors := `<CORSConfiguration><CORSRule><AllowedOrigin>https://page</AllowedOrigin><AllowedMethod>GET</AllowedMethod></CORSRule></CORSConfiguration>`
	d.wantRaw("alice", "PUT", "/cond?cors", []byte(cors), nil, 200, "")
	for _, query := range []string{"", "?response-cache-control=no-store&response-expires=never&response-content-type=text/b"} {
		for _, method := range []string{"GET", "HEAD"} {
			all, _ := d.wantRaw("alice", method, "/cond/cached"+query, nil, map[string]string{"Origin": "https://page"}, 200, "")
			for name, value := range map[string]string{"If-None-Match": all.Header.Get("ETag"), "If-Modified-Since": all.Header.Get("Last-Modified")} {
				res, body := d.wantRaw("alice", method, "/cond/cached"+query, nil, map[string]string{"Origin": "https://page", name: value}, 304, "")
				for _, kept := range []string{"ETag", "Last-Modified", "Cache-Control", "Expires", "Vary"} {
					if got, want := res.Header.Get(kept), all.Header.Get(kept); got != want || want == "" {
						t.Errorf("%s %s, %s: %s %q, want %q", method, query, name, kept, got, want)
					}
				}
				for _, gone := range []string{"Content-Type", "Content-Language", "Content-Length", "X-Amz-Meta-A", "Accept-Ranges"} {
					if res.Header.Get(gone) != "" || body != "" {
						t.Errorf("%s %s, %s: %s is %q", method, query, name, gone, res.Header.Get(gone))
					}
				}
			}
		}
	}
}

func TestChecksums(t *testing.T) {
	d := openDoor(t, Config{})
	c := d.bucket("alice", "sums")
	b := aws.String("sums")
	body := make([]byte, 300<<10)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(body)
	for _, alg := range types.ChecksumAlgorithm("").Values() {
		if _, err := findAlgorithm(string(alg)); err != nil {
			t.Error(err)
			continue
		}
		if slices.Contains([]types.ChecksumAlgorithm{"MD5", "SHA512", "XXHASH64", "XXHASH3", "XXHASH128"}, alg) {
			continue // the SDK names them and computes none
		}
		k := aws.String("k-" + string(alg))
		// A body that cannot be rewound makes the SDK send it as a trailer.
		for _, src := range []io.Reader{bytes.NewReader(body), bytes.NewBuffer(append([]byte(nil), body...))} {
			in := &awss3.PutObjectInput{Bucket: b, Key: k, Body: src, ChecksumAlgorithm: alg, ContentLength: aws.Int64(int64(len(body)))}
			if _, seekable := src.(io.Seeker); !seekable {
				continue // over plain HTTP the SDK demands to sign the body; trailers are tested below
			}
			if _, err := c.PutObject(bg, in); err != nil {
				t.Fatal(alg, err)
			}
		}
		o, err := c.GetObject(bg, &awss3.GetObjectInput{Bucket: b, Key: k, ChecksumMode: types.ChecksumModeEnabled})
		if err != nil {
			t.Fatal(alg, err)
		}
		got, err := io.ReadAll(o.Body) // the SDK verifies here
		if err != nil || !bytes.Equal(got, body) || o.ChecksumType != types.ChecksumTypeFullObject {
			t.Errorf("%s: %d bytes, %v %v", alg, len(got), o.ChecksumType, err)
		}
		a, _ := findAlgorithm(string(alg))
		sum := a.make()
		sum.Write(body)
		h, err := c.HeadObject(bg, &awss3.HeadObjectInput{Bucket: b, Key: k, ChecksumMode: types.ChecksumModeEnabled})
		if err != nil {
			t.Fatal(err)
		}
		shown := map[types.ChecksumAlgorithm]*string{"CRC32": h.ChecksumCRC32, "CRC32C": h.ChecksumCRC32C, "CRC64NVME": h.ChecksumCRC64NVME, "SHA1": h.ChecksumSHA1, "SHA256": h.ChecksumSHA256}
		for other, v := range shown {
			if (v != nil) != (other == alg) {
				t.Errorf("%s: %s is %v", alg, other, v)
			}
		}
		if v := shown[alg]; v != nil && *v != encode64(sum.Sum(nil)) {
			t.Errorf("%s: %s", alg, *v)
		}
		bad := encode64(make([]byte, a.name.Size()))
		for _, mode := range []string{"header", "trailer"} {
			h := map[string]string{a.header: bad}
			sent, code := body, "BadDigest"
			if mode == "trailer" {
				h = map[string]string{"X-Amz-Content-Sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER", "X-Amz-Trailer": a.header, "X-Amz-Decoded-Content-Length": fmt.Sprint(len(body)), "Content-Encoding": "aws-chunked"}
				sent = []byte(fmt.Sprintf("%x\r\n%s\r\n0\r\n%s:%s\r\n\r\n", len(body), body, strings.ToLower(a.header), bad))
			}
			d.wantRaw("alice", "PUT", "/sums/"+*k, sent, h, 400, code)
			if mode == "trailer" {
				sent = []byte(fmt.Sprintf("%x\r\n%s\r\n0\r\n%s:%s\r\n\r\n", len(body), body, strings.ToLower(a.header), encode64(sum.Sum(nil))))
				d.wantRaw("alice", "PUT", "/sums/"+*k, sent, h, 200, "")
				if hd, _ := c.HeadObject(bg, &awss3.HeadObjectInput{Bucket: b, Key: k}); hd.ContentEncoding != nil {
					t.Errorf("stored Content-Encoding %s", *hd.ContentEncoding)
				}
			}
		}
		d.wantRaw("alice", "PUT", "/sums/"+*k, body, map[string]string{a.header: "xyz"}, 400, "InvalidRequest")
		if get(t, c, "sums", *k) != string(body) {
			t.Error("a refused PUT changed the object")
		}
	}
	// Without a checksum of the client's there is CRC64NVME.
	d.wantRaw("alice", "PUT", "/sums/none", body, nil, 200, "")
	res, _ := d.wantRaw("alice", "GET", "/sums/none", nil, map[string]string{"X-Amz-Checksum-Mode": "ENABLED"}, 200, "")
	sum := algorithms[0].make()
	sum.Write(body)
	if got := res.Header.Get("X-Amz-Checksum-Crc64nvme"); got != encode64(sum.Sum(nil)) || res.Header.Get("X-Amz-Checksum-Type") != "FULL_OBJECT" {
		t.Errorf("%v", res.Header)
	}
	res, _ = d.wantRaw("alice", "GET", "/sums/none", nil, map[string]string{"X-Amz-Checksum-Mode": "ENABLED", "Range": "bytes=1-2"}, 206, "")
	if got := res.Header.Get("X-Amz-Checksum-Crc64nvme"); got != "" {
		t.Error("a range with the checksum of the whole")
	}
	two := map[string]string{"X-Amz-Checksum-Crc32": "AAAAAA==", "X-Amz-Checksum-Crc32c": "AAAAAA=="}
	d.wantRaw("alice", "PUT", "/sums/two", nil, two, 400, "Expecting a single")
	d.wantRaw("alice", "PUT", "/sums/none", nil, map[string]string{"X-Amz-Sdk-Checksum-Algorithm": "CRC32"}, 400, "InvalidRequest")
	d.wantRaw("alice", "PUT", "/sums/md5", body, map[string]string{"Content-Md5": encode64(make([]byte, 16))}, 400, "BadDigest")
	d.wantRaw("alice", "PUT", "/sums/md5", body, map[string]string{"Content-Md5": "zzz"}, 400, "InvalidDigest")
	m := md5.Sum(body)
	d.wantRaw("alice", "PUT", "/sums/md5", body, map[string]string{"Content-Md5": encode64(m[:])}, 200, "")
}

func TestDeleteObjects(t *testing.T) {
	d := openDoor(t, Config{})
	c := d.bucket("alice", "del")
	tag := *put(t, c, "del", "a", "1").ETag
	put(t, c, "del", "b", "1")
	put(t, c, "del", "c", "1")
	doc := `<Delete><Object><Key>a</Key><ETag>` + tag + `</ETag></Object><Object><Key>b</Key><ETag>"x"</ETag></Object>` +
		`<Object><Key>c</Key><VersionId>v</VersionId></Object><Object><Key></Key></Object><Object><Key>nope</Key></Object></Delete>`
	_, body := d.wantRaw("alice", "POST", "/del?delete=", []byte(doc), nil, 200, "<Deleted><Key>a</Key></Deleted>")
	for _, want := range []string{"<Error><Key>b</Key><Code>PreconditionFailed", "<Error><Key>c</Key><VersionId>v</VersionId><Code>NoSuchVersion",
		"<Error><Key></Key><Code>UserKeyMustBeSpecified", "<Deleted><Key>nope</Key></Deleted>"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in %s", want, body)
		}
	}
	_, body = d.wantRaw("alice", "POST", "/del?delete", []byte(`<Delete><Quiet>true</Quiet><Object><Key>b</Key></Object></Delete>`), nil, 200, "DeleteResult")
	if strings.Contains(body, "<Deleted>") {
		t.Errorf("not quiet: %s", body)
	}
	if got := listAll(t, c, "del", 10); !reflect.DeepEqual(got, []string{"c"}) {
		t.Errorf("left: %q", got)
	}
	for name, bad := range map[string]string{
		"no XML": "xx", "empty": "", "no objects": "<Delete></Delete>", "no key": "<Delete><Object></Object></Delete>",
		"too many": "<Delete>" + strings.Repeat("<Object><Key>k</Key></Object>", 1001) + "</Delete>",
	} {
		res, body := d.raw("alice", "POST", "/del?delete", []byte(bad), nil)
		if res.StatusCode != 400 || !strings.Contains(body, "<Code>M") {
			t.Errorf("%s: %d %s", name, res.StatusCode, body)
		}
	}
	d.wantRaw("alice", "POST", "/del?delete", bytes.Repeat([]byte(" "), int(deleteBounds.bytes)+1), nil, 400, "MaxMessageLengthExceeded")
	d.wantRaw("bob", "POST", "/del?delete", []byte(doc), nil, 403, "AccessDenied")
}

// A document is refused as a whole, or what became of each of its keys is answered and
// audited.
func TestDeleteObjectsIsAnsweredWhole(t *testing.T) {
	faults := &mem.Faults{}
	details := make(chan string, 100)
	d := openDoorOn(t, Config{Done: func(r *httpapi.Record) {
		if r.Operation == "DeleteObjects" {
			details <- r.Subject.Detail
		}
	}}, mem.Options{Faults: faults})
	c := d.bucket("alice", "whole")
	tag := *put(t, c, "whole", "a", "1").ETag
	conditional := "<Object><Key>a</Key><ETag>" + tag + "</ETag></Object>"
	for name, bad := range map[string]string{
		"no key":        "<Object/>",
		"not a size":    "<Object><Key>b</Key><Size>many</Size></Object>",
		"not a time":    "<Object><Key>b</Key><LastModifiedTime>now</LastModifiedTime></Object>",
		"one too many":  strings.Repeat("<Object><Key>k</Key></Object>", maxDeleteKeys),
		"cut":           "<Object><Key>b</Key>",
		"two documents": "</Delete><Delete>",
	} {
		d.wantRaw("alice", "POST", "/whole?delete", []byte("<Delete>"+conditional+bad+"</Delete>"), nil, 400, "MalformedXML")
		if got := listAll(t, c, "whole", 10); !reflect.DeepEqual(got, []string{"a"}) {
			t.Fatalf("%s: left %q", name, got)
		}
		if got := <-details; got != "" {
			t.Errorf("%s: audited %s", name, got)
		}
	}
	for _, none := range []string{",", " "} { // a condition that nothing meets, and not none
		doc := "<Delete><Object><Key>a</Key><ETag>" + none + "</ETag></Object></Delete>"
		d.wantRaw("alice", "POST", "/whole?delete", []byte(doc), nil, 200, "<Code>PreconditionFailed</Code>")
		<-details
	}
	for n := 1; ; n++ {
		put(t, c, "whole", "a", "1")
		put(t, c, "whole", "b", "1")
		faults.FailAt(n, cluster.ErrUnavailable)
		res, body := d.raw("alice", "POST", "/whole?delete", []byte("<Delete>"+conditional+"<Object><Key>b</Key></Object></Delete>"), nil)
		done := n > faults.Calls()
		faults.Clear()
		detail, left := <-details, listAll(t, c, "whole", 10)
		if res.StatusCode != 200 && len(left) < 2 {
			t.Errorf("call %d: left %q: %d %s", n, left, res.StatusCode, body)
		}
		for _, key := range []string{"a", "b"} { // what failed may be done, if the store lost the answer
			if res.StatusCode == 200 && (!strings.Contains(detail, `"`+key+`"`) || !strings.Contains(body, "<Key>"+key+"</Key>")) {
				t.Errorf("call %d: no %s: audited %s, answered %s", n, key, detail, body)
			}
		}
		if done {
			break
		}
	}
}
