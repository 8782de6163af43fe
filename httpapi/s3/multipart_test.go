package s3

import (
	"bytes"
	"crypto/md5"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"ogw/vfs"
)

func randomBytes(n int, seed byte) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b)
	return b
}

// upload sends parts and completes, with a checksum algorithm or "".
func upload(t *testing.T, c *awss3.Client, bucket, key string, alg types.ChecksumAlgorithm, kind types.ChecksumType, parts ...[]byte) *awss3.CompleteMultipartUploadOutput {
	t.Helper()
	up, err := c.CreateMultipartUpload(bg, &awss3.CreateMultipartUploadInput{Bucket: &bucket, Key: &key, ChecksumAlgorithm: alg, ChecksumType: kind,
		ContentType: aws.String("text/multi"), Metadata: map[string]string{"m": "v"}})
	if err != nil {
		t.Fatal(err)
	}
	var done types.CompletedMultipartUpload
	for i, p := range parts {
		n := int32(i + 1)
		out, err := c.UploadPart(bg, &awss3.UploadPartInput{Bucket: &bucket, Key: &key, UploadId: up.UploadId, PartNumber: &n, Body: bytes.NewReader(p), ChecksumAlgorithm: alg})
		if err != nil {
			t.Fatal(err)
		}
		done.Parts = append(done.Parts, types.CompletedPart{PartNumber: &n, ETag: out.ETag, ChecksumCRC32: out.ChecksumCRC32,
			ChecksumCRC32C: out.ChecksumCRC32C, ChecksumCRC64NVME: out.ChecksumCRC64NVME, ChecksumSHA1: out.ChecksumSHA1, ChecksumSHA256: out.ChecksumSHA256})
	}
	size := int64(0)
	for _, p := range parts {
		size += int64(len(p))
	}
	out, err := c.CompleteMultipartUpload(bg, &awss3.CompleteMultipartUploadInput{Bucket: &bucket, Key: &key, UploadId: up.UploadId, MultipartUpload: &done, MpuObjectSize: &size, ChecksumType: kind})
	if err != nil {
		t.Fatal(alg, kind, err)
	}
	return out
}

func TestMultipart(t *testing.T) {
	d := openDoor(t, Config{})
	c := d.bucket("alice", "multi")
	b := aws.String("multi")
	parts := [][]byte{randomBytes(5<<20, 1), randomBytes(5<<20+1, 2), randomBytes(100, 3)}
	whole := bytes.Join(parts, nil)
	var sums []byte
	for _, p := range parts {
		s := md5.Sum(p)
		sums = append(sums, s[:]...)
	}
	etag := fmt.Sprintf(`"%x-3"`, md5.Sum(sums))
	for _, tc := range []struct {
		alg  types.ChecksumAlgorithm
		kind types.ChecksumType
	}{
		{"", ""}, {"CRC32", ""}, {"CRC32", "FULL_OBJECT"}, {"CRC32C", "COMPOSITE"}, {"CRC32C", "FULL_OBJECT"}, {"CRC64NVME", ""}, {"SHA1", ""}, {"SHA256", "COMPOSITE"},
	} {
		key := "k-" + string(tc.alg) + "-" + string(tc.kind)
		out := upload(t, c, "multi", key, tc.alg, tc.kind, parts...)
		if *out.ETag != etag {
			t.Errorf("%s: ETag %s, want %s", key, *out.ETag, etag)
		}
		res, got := d.raw("alice", "GET", "/multi/"+key, nil, map[string]string{"X-Amz-Checksum-Mode": "ENABLED"})
		if got != string(whole) || res.Header.Get("Content-Type") != "text/multi" || res.Header.Get("X-Amz-Meta-M") != "v" {
			t.Errorf("%s: %d bytes, %v", key, len(got), res.Header)
		}
		alg := string(tc.alg)
		if alg == "" {
			alg = "CRC64NVME"
			if h := res.Header.Get("X-Amz-Checksum-Crc32"); h != "" { // the SDK's default algorithm
				alg = "CRC32"
			}
		}
		a, err := findAlgorithm(alg)
		if err != nil {
			t.Fatal(err)
		}
		full := a.make()
		full.Write(whole)
		want := encode64(full.Sum(nil))
		if res.Header.Get("X-Amz-Checksum-Type") == "COMPOSITE" {
			composite := a.make()
			for _, p := range parts {
				one := a.make()
				one.Write(p)
				composite.Write(one.Sum(nil))
			}
			want = encode64(composite.Sum(nil)) + "-3"
		}
		if got := res.Header.Get(a.header); got != want {
			t.Errorf("%s: %s %q, want %q (%v)", key, a.header, got, want, res.Header.Get("X-Amz-Checksum-Type"))
		}
		if tc.kind != "" && res.Header.Get("X-Amz-Checksum-Type") != string(tc.kind) {
			t.Errorf("%s: type %s", key, res.Header.Get("X-Amz-Checksum-Type"))
		}
		res, got = d.raw("alice", "GET", "/multi/"+key+"?partNumber=2", nil, map[string]string{"X-Amz-Checksum-Mode": "ENABLED"})
		if res.StatusCode != 206 || got != string(parts[1]) || res.Header.Get("X-Amz-Mp-Parts-Count") != "3" {
			t.Errorf("%s: part 2: %d, %d bytes, %v", key, res.StatusCode, len(got), res.Header)
		}
	}
	d.wantRaw("alice", "GET", "/multi/k--?partNumber=4", nil, nil, 416, "InvalidPartNumber")
	d.wantRaw("alice", "GET", "/multi/k--?partNumber=0", nil, nil, 400, "InvalidArgument")
	d.wantRaw("alice", "GET", "/multi/k--?partNumber=1", nil, map[string]string{"Range": "bytes=0-1"}, 400, "InvalidRequest")
	page, err := c.ListMultipartUploads(bg, &awss3.ListMultipartUploadsInput{Bucket: b})
	if err != nil || len(page.Uploads) != 0 {
		t.Errorf("%+v %v", page, err)
	}
}

// TestEmptyPartsChecksum: an empty part does not come with the checksum of the whole.
func TestEmptyPartsChecksum(t *testing.T) {
	d := openDoor(t, Config{})
	c := d.bucket("alice", "multi")
	for _, alg := range []types.ChecksumAlgorithm{"", "CRC32", "CRC64NVME", "SHA256"} {
		upload(t, c, "multi", "k", alg, "", randomBytes(5<<20, 1), nil)
		for _, method := range []string{"GET", "HEAD"} {
			res, _ := d.wantRaw("alice", method, "/multi/k?partNumber=2", nil, map[string]string{"X-Amz-Checksum-Mode": "ENABLED"}, 200, "")
			for _, a := range algorithms {
				if got := res.Header.Get(a.header); got != "" && got != encode64(a.make().Sum(nil)) {
					t.Errorf("%s %s: %s is %s", method, alg, a.name, got)
				}
			}
		}
	}
}

// TestLocationOfUpload: the object's URL has the scheme by which the client came.
func TestLocationOfUpload(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "multi")
	for _, base := range []string{d.url, d.tls} {
		c := d.client("alice", func(o *awss3.Options) {
			o.BaseEndpoint, o.HTTPClient = &base, &http.Client{Transport: anyCertificate}
		})
		out := upload(t, c, "multi", "a/photo 1.jpg", "", "", []byte("part"))
		if got, want := *out.Location, base+"/multi/a%2Fphoto%201.jpg"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestMultipartErrors(t *testing.T) {
	d := openDoor(t, Config{})
	c := d.bucket("alice", "multi")
	b, k := aws.String("multi"), aws.String("k")
	put(t, c, "multi", "k", "before")
	up, err := c.CreateMultipartUpload(bg, &awss3.CreateMultipartUploadInput{Bucket: b, Key: k})
	if err != nil {
		t.Fatal(err)
	}
	part := func(n int32, body string) *string {
		t.Helper()
		out, err := c.UploadPart(bg, &awss3.UploadPartInput{Bucket: b, Key: k, UploadId: up.UploadId, PartNumber: &n, Body: strings.NewReader(body)})
		if err != nil {
			t.Fatal(err)
		}
		return out.ETag
	}
	e1, e2 := part(1, "small"), part(2, "last")
	complete := func(id *string, parts ...types.CompletedPart) error {
		_, err := c.CompleteMultipartUpload(bg, &awss3.CompleteMultipartUploadInput{Bucket: b, Key: k, UploadId: id, MultipartUpload: &types.CompletedMultipartUpload{Parts: parts}})
		return err
	}
	one := func(n int32, e *string) types.CompletedPart { return types.CompletedPart{PartNumber: &n, ETag: e} }
	wantCode(t, "small part", complete(up.UploadId, one(1, e1), one(2, e2)), "EntityTooSmall")
	wantCode(t, "order", complete(up.UploadId, one(2, e2), one(1, e1)), "InvalidPartOrder")
	wantCode(t, "twice", complete(up.UploadId, one(1, e1), one(1, e1)), "InvalidPartOrder")
	wantCode(t, "other ETag", complete(up.UploadId, one(1, e2)), "InvalidPart")
	wantCode(t, "no such part", complete(up.UploadId, one(3, e1)), "InvalidPart")
	wantCode(t, "no such upload", complete(aws.String("nonsense"), one(1, e1)), "NoSuchUpload")
	wantCode(t, "no parts", complete(up.UploadId), "MalformedXML")
	target := "/multi/k?uploadId=" + escape(*up.UploadId)
	d.wantRaw("alice", "POST", target, []byte("junk"), nil, 400, "MalformedXML")
	d.wantRaw("alice", "PUT", target+"&partNumber=0", []byte("x"), nil, 400, "InvalidArgument")
	d.wantRaw("alice", "PUT", target+"&partNumber=10001", []byte("x"), nil, 400, "InvalidArgument")
	d.wantRaw("alice", "PUT", target+"&partNumber=x", []byte("x"), nil, 400, "InvalidArgument")
	d.wantRaw("alice", "PUT", target, []byte("x"), nil, 400, "InvalidRequest")
	d.wantRaw("alice", "PUT", "/multi/k?partNumber=1", []byte("x"), nil, 400, "InvalidRequest")
	d.wantRaw("alice", "PUT", "/multi/k?partNumber=1&uploadId=nope", []byte("x"), nil, 404, "NoSuchUpload")
	d.wantRaw("alice", "PUT", "/multi/other?partNumber=1&uploadId="+escape(*up.UploadId), []byte("x"), nil, 404, "NoSuchUpload")
	d.wantRaw("alice", "PUT", target+"&partNumber=1", []byte("x"), map[string]string{"Content-Md5": encode64(make([]byte, 16))}, 400, "BadDigest")
	d.wantRaw("bob", "PUT", target+"&partNumber=1", []byte("x"), nil, 403, "AccessDenied")
	// ETags may come without quotes or as entities.
	raw := strings.Trim(*e1, `"`)
	lp, err := c.ListParts(bg, &awss3.ListPartsInput{Bucket: b, Key: k, UploadId: up.UploadId, MaxParts: aws.Int32(1)})
	if err != nil || len(lp.Parts) != 1 || *lp.Parts[0].ETag != *e1 || !*lp.IsTruncated || *lp.NextPartNumberMarker != "1" || *lp.Owner.ID != d.userID("alice") {
		t.Errorf("%+v %v", lp, err)
	}
	lp, err = c.ListParts(bg, &awss3.ListPartsInput{Bucket: b, Key: k, UploadId: up.UploadId, PartNumberMarker: aws.String("1")})
	if err != nil || len(lp.Parts) != 1 || *lp.Parts[0].PartNumber != 2 || *lp.IsTruncated {
		t.Errorf("%+v %v", lp, err)
	}
	d.wantRaw("alice", "POST", target, []byte(`<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>&#34;`+raw+`&quot;</ETag></Part></CompleteMultipartUpload>`),
		map[string]string{"X-Amz-Mp-Object-Size": "6"}, 400, "x-amz-mp-object-size")
	if got := get(t, c, "multi", "k"); got != "before" {
		t.Errorf("an unfinished upload shows: %q", got)
	}
	d.wantRaw("alice", "POST", target, []byte(`<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>&#34;`+raw+`&quot;</ETag></Part></CompleteMultipartUpload>`),
		map[string]string{"X-Amz-Mp-Object-Size": "5"}, 200, "CompleteMultipartUploadResult")
	if got := get(t, c, "multi", "k"); got != "small" {
		t.Errorf("holds %q", got)
	}
	wantCode(t, "a retry", complete(up.UploadId, one(1, e1)), "") // the first answer may have been lost
	d.wantRaw("alice", "PUT", target+"&partNumber=1", []byte("x"), nil, 404, "NoSuchUpload")
}

func TestListUploadsAndAbort(t *testing.T) {
	d := openDoor(t, Config{})
	c := d.bucket("alice", "multi")
	b := aws.String("multi")
	ids := map[string]string{}
	for _, k := range []string{"a", "dir/x", "dir/y", "z"} {
		up, err := c.CreateMultipartUpload(bg, &awss3.CreateMultipartUploadInput{Bucket: b, Key: aws.String(k)})
		if err != nil {
			t.Fatal(err)
		}
		ids[k] = *up.UploadId
	}
	var got []string
	in := &awss3.ListMultipartUploadsInput{Bucket: b, MaxUploads: aws.Int32(1)}
	for range 10 {
		out, err := c.ListMultipartUploads(bg, in)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range out.Uploads {
			got = append(got, *u.Key)
			if *u.UploadId != ids[*u.Key] || *u.Initiator.ID != d.userID("alice") {
				t.Errorf("%+v", u)
			}
		}
		if !*out.IsTruncated {
			break
		}
		in.KeyMarker, in.UploadIdMarker = out.NextKeyMarker, out.NextUploadIdMarker
	}
	if fmt.Sprint(got) != "[a dir/x dir/y z]" {
		t.Errorf("%v", got)
	}
	out, err := c.ListMultipartUploads(bg, &awss3.ListMultipartUploadsInput{Bucket: b, Delimiter: aws.String("/")})
	if err != nil || len(out.Uploads) != 2 || len(out.CommonPrefixes) != 1 || *out.CommonPrefixes[0].Prefix != "dir/" {
		t.Errorf("%+v %v", out, err)
	}
	if got := listAll(t, c, "multi", 10); len(got) != 0 {
		t.Errorf("uploads are listed as objects: %q", got)
	}
	abort := func(k string) error {
		_, err := c.AbortMultipartUpload(bg, &awss3.AbortMultipartUploadInput{Bucket: b, Key: &k, UploadId: aws.String(ids[k])})
		return err
	}
	wantCode(t, "abort", abort("a"), "")
	wantCode(t, "abort again", abort("a"), "NoSuchUpload")
}

func TestCopy(t *testing.T) {
	d := openDoor(t, Config{})
	c := d.bucket("alice", "src")
	d.bucket("alice", "dst")
	d.bucket("bob", "bobs")
	key := "dir/ü +%k"
	_, err := c.PutObject(bg, &awss3.PutObjectInput{Bucket: aws.String("src"), Key: &key, Body: strings.NewReader("content"), ContentType: aws.String("text/a"),
		Metadata: map[string]string{"m": "1"}, Tagging: aws.String("t=1"), ACL: types.ObjectCannedACLPublicRead})
	if err != nil {
		t.Fatal(err)
	}
	source := aws.String(escape("src/" + key))
	copyTo := func(change func(*awss3.CopyObjectInput)) (*awss3.CopyObjectOutput, error) {
		in := &awss3.CopyObjectInput{Bucket: aws.String("dst"), Key: aws.String("copy"), CopySource: source}
		if change != nil {
			change(in)
		}
		return c.CopyObject(bg, in)
	}
	head := func() string {
		t.Helper()
		h, err := c.HeadObject(bg, &awss3.HeadObjectInput{Bucket: aws.String("dst"), Key: aws.String("copy")})
		if err != nil {
			t.Fatal(err)
		}
		tags, err := c.GetObjectTagging(bg, &awss3.GetObjectTaggingInput{Bucket: aws.String("dst"), Key: aws.String("copy")})
		if err != nil {
			t.Fatal(err)
		}
		s := *h.ContentType + " " + fmt.Sprint(h.Metadata)
		for _, tag := range tags.TagSet {
			s += " " + *tag.Key + "=" + *tag.Value
		}
		return s
	}
	out, err := copyTo(nil)
	if err != nil || *out.CopyObjectResult.ETag != `"9a0364b9e99bb480dd25e1f0284c8555"` || out.CopyObjectResult.LastModified == nil {
		t.Fatalf("%+v %v", out, err)
	}
	if got := head(); got != "text/a map[m:1] t=1" || get(t, c, "dst", "copy") != "content" {
		t.Errorf("copy has %q", got)
	}
	d.wantRaw("", "GET", "/dst/copy", nil, nil, 403, "AccessDenied") // the ACL is not copied
	_, err = copyTo(func(in *awss3.CopyObjectInput) {
		in.MetadataDirective, in.ContentType, in.Metadata = types.MetadataDirectiveReplace, aws.String("text/b"), map[string]string{"n": "2"}
	})
	if got := head(); err != nil || got != "text/b map[n:2] t=1" {
		t.Errorf("%q %v", got, err)
	}
	_, err = copyTo(func(in *awss3.CopyObjectInput) {
		in.TaggingDirective, in.Tagging = types.TaggingDirectiveReplace, aws.String("u=2")
	})
	if got := head(); err != nil || got != "text/a map[m:1] u=2" {
		t.Errorf("%q %v", got, err)
	}
	self := func(in *awss3.CopyObjectInput) { in.Bucket, in.Key = aws.String("src"), &key }
	_, err = copyTo(self)
	wantCode(t, "onto itself", err, "InvalidRequest")
	_, err = copyTo(func(in *awss3.CopyObjectInput) {
		self(in)
		in.MetadataDirective, in.ContentType = types.MetadataDirectiveReplace, aws.String("text/new")
	})
	wantCode(t, "onto itself, replacing", err, "")
	if h, err := c.HeadObject(bg, &awss3.HeadObjectInput{Bucket: aws.String("src"), Key: &key}); err != nil || *h.ContentType != "text/new" || *h.ContentLength != 7 {
		t.Errorf("%+v %v", h, err)
	}
	for name, tc := range map[string]struct {
		change func(*awss3.CopyObjectInput)
		code   string
	}{
		"if match":      {func(in *awss3.CopyObjectInput) { in.CopySourceIfMatch = aws.String("x") }, "PreconditionFailed"},
		"if none match": {func(in *awss3.CopyObjectInput) { in.CopySourceIfNoneMatch = aws.String("*") }, "PreconditionFailed"},
		"no key":        {func(in *awss3.CopyObjectInput) { in.CopySource = aws.String("src/none") }, "NoSuchKey"},
		"no bucket":     {func(in *awss3.CopyObjectInput) { in.CopySource = aws.String("none/none") }, "NoSuchBucket"},
		"malformed":     {func(in *awss3.CopyObjectInput) { in.CopySource = aws.String("src") }, "InvalidArgument"},
		"version":       {func(in *awss3.CopyObjectInput) { in.CopySource = aws.String(*source + "?versionId=v") }, "NoSuchVersion"},
		"forbidden":     {func(in *awss3.CopyObjectInput) { in.CopySource = aws.String("bobs/k") }, "AccessDenied"},
		"directive":     {func(in *awss3.CopyObjectInput) { in.MetadataDirective = "MERGE" }, "InvalidArgument"},
		"no target":     {func(in *awss3.CopyObjectInput) { in.Bucket = aws.String("none") }, "NoSuchBucket"},
	} {
		_, err := copyTo(tc.change)
		wantCode(t, name, err, tc.code)
	}
}

// TestCopyOntoItself: it is legal where a header says what shall be otherwise, though
// it is so already.
func TestCopyOntoItself(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "self")
	const class = "X-Amz-Storage-Class"
	put := map[string]string{class: "STANDARD_IA", "X-Amz-Meta-A": "b", "X-Amz-Tagging": "t=1", "Content-Type": "text/a"}
	d.wantRaw("alice", "PUT", "/self/k", []byte("content"), put, 200, "")
	for _, c := range []struct {
		name, value string
		status      int
		class       string
	}{
		{"X-Amz-Acl", "public-read", 400, "STANDARD_IA"},
		{"X-Amz-Metadata-Directive", "COPY", 400, "STANDARD_IA"},
		{class, "", 400, "STANDARD_IA"},
		{class, "STANDARD_IA", 200, "STANDARD_IA"},
		{class, "STANDARD", 200, ""},
		{class, "STANDARD", 200, ""},
		{class, "GLACIER_IR", 200, "GLACIER_IR"},
		{class, "GLACIER", 200, ""},
		{redirectHeader, "/elsewhere", 200, ""},
		{"X-Amz-Server-Side-Encryption", "AES256", 501, ""},
	} {
		says := map[int]string{200: "<CopyObjectResult", 400: "<Code>InvalidRequest<", 501: "<Code>NotImplemented<"}[c.status]
		d.wantRaw("alice", "PUT", "/self/k", nil, map[string]string{"X-Amz-Copy-Source": "/self/k", c.name: c.value}, c.status, says)
		res, got := d.wantRaw("alice", "GET", "/self/k", nil, nil, 200, "")
		h := res.Header
		if got != "content" || h.Get(class) != c.class || h.Get("X-Amz-Meta-A") != "b" || h.Get("X-Amz-Tagging-Count") != "1" || h.Get("Content-Type") != "text/a" {
			t.Errorf("%s: %q: %q %v", c.name, c.value, got, h)
		}
	}
}

// A copy takes user metadata along that no answer shows, whatever else it changes.
func TestCopyMuchMetadata(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "much")
	d.wantRaw("alice", "PUT", "/much/k", []byte("content"), nil, 200, "")
	ino := func(key string) vfs.Ino {
		t.Helper()
		a, err := d.fs.Resolve(bg, vfs.Root, "much/"+key, true)
		if err != nil {
			t.Fatal(err)
		}
		return a.Ino
	}
	for i := range 4 {
		x := vfs.Xattr{Name: fmt.Sprint("user.", i), Value: bytes.Repeat([]byte("v"), vfs.MaxXattrValueBytes)}
		if err := d.fs.SetXattr(bg, vfs.Root, ino("k"), x, 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, tags := range []string{"COPY", "REPLACE"} {
		d.wantRaw("alice", "PUT", "/much/"+tags, nil, map[string]string{"X-Amz-Copy-Source": "/much/k", "X-Amz-Tagging-Directive": tags}, 200, "")
		if list, err := d.fs.ListXattr(bg, vfs.Root, ino(tags)); err != nil || len(list) != 4 {
			t.Errorf("tags %s: %d attributes, %v", tags, len(list), err)
		}
	}
	if res, _ := d.raw("alice", "HEAD", "/much/k", nil, nil); res.Header.Get("X-Amz-Missing-Meta") != "4" {
		t.Errorf("headers %v", res.Header)
	}
}

// Conditions of the source hold whatever the directives are.
func TestCopySourceConditions(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "source-if")
	res, _ := d.wantRaw("alice", "PUT", "/source-if/k", []byte("content"), nil, 200, "")
	tag := res.Header.Get("ETag")
	past, future := time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat), time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	const on = "X-Amz-Copy-Source-If-"
	for _, c := range []struct {
		is, not string // the condition that does not hold, if any
		with    map[string]string
	}{
		{"unmodified, not", "Unmodified-Since", map[string]string{on + "Unmodified-Since": past}},
		{"unmodified", "", map[string]string{on + "Unmodified-Since": future}},
		{"modified", "", map[string]string{on + "Modified-Since": past}},
		{"modified, not", "Modified-Since", map[string]string{on + "Modified-Since": future}},
		{"match", "", map[string]string{on + "Match": tag}},
		{"match, not", "Match", map[string]string{on + "Match": `"other"`}},
		{"match beats unmodified", "", map[string]string{on + "Match": tag, on + "Unmodified-Since": past}},
		{"none match", "", map[string]string{on + "None-Match": `"other"`}},
		{"none match, not", "None-Match", map[string]string{on + "None-Match": tag}},
		{"none match beats modified", "None-Match", map[string]string{on + "None-Match": tag, on + "Modified-Since": past}},
	} {
		for _, meta := range []string{"COPY", "REPLACE"} {
			for _, tags := range []string{"COPY", "REPLACE"} {
				h := maps.Clone(c.with)
				h["X-Amz-Copy-Source"], h["X-Amz-Metadata-Directive"], h["X-Amz-Tagging-Directive"] = "/source-if/k", meta, tags
				status, says := 200, "<CopyObjectResult"
				if c.not != "" {
					status, says = 412, "<Condition>x-amz-copy-source-If-"+c.not+"</Condition>"
				}
				if res, got := d.raw("alice", "PUT", "/source-if/copy", nil, h); res.StatusCode != status || !strings.Contains(got, says) {
					t.Errorf("%s, metadata %s, tags %s: %d %s", c.is, meta, tags, res.StatusCode, got)
				}
			}
		}
	}
}

func TestUploadPartCopy(t *testing.T) {
	d := openDoor(t, Config{})
	c := d.bucket("alice", "parts")
	b, k := aws.String("parts"), aws.String("k")
	big := randomBytes(6<<20, 7)
	if _, err := c.PutObject(bg, &awss3.PutObjectInput{Bucket: b, Key: aws.String("big"), Body: bytes.NewReader(big)}); err != nil {
		t.Fatal(err)
	}
	up, err := c.CreateMultipartUpload(bg, &awss3.CreateMultipartUploadInput{Bucket: b, Key: k})
	if err != nil {
		t.Fatal(err)
	}
	var done types.CompletedMultipartUpload
	for i, r := range []*string{nil, aws.String("bytes=10-5242889"), aws.String("bytes=0-9")} {
		n := int32(i + 1)
		out, err := c.UploadPartCopy(bg, &awss3.UploadPartCopyInput{Bucket: b, Key: k, UploadId: up.UploadId, PartNumber: &n, CopySource: aws.String("/parts/big"), CopySourceRange: r})
		if err != nil {
			t.Fatal(err)
		}
		done.Parts = append(done.Parts, types.CompletedPart{PartNumber: &n, ETag: out.CopyPartResult.ETag})
	}
	for r, code := range map[string]string{"bytes=0-6291456": "InvalidRange", "bytes=5-": "InvalidArgument", "0-5": "InvalidArgument", "bytes=9-5": "InvalidArgument", "bytes=99999999-999999999": "InvalidArgument"} {
		_, err := c.UploadPartCopy(bg, &awss3.UploadPartCopyInput{Bucket: b, Key: k, UploadId: up.UploadId, PartNumber: aws.Int32(9), CopySource: aws.String("parts/big"), CopySourceRange: &r})
		wantCode(t, r, err, code)
	}
	if _, err := c.CompleteMultipartUpload(bg, &awss3.CompleteMultipartUploadInput{Bucket: b, Key: k, UploadId: up.UploadId, MultipartUpload: &done}); err != nil {
		t.Fatal(err)
	}
	want := append(append(append([]byte(nil), big...), big[10:5242890]...), big[:10]...)
	if got := get(t, c, "parts", "k"); got != string(want) {
		t.Errorf("%d bytes, want %d", len(got), len(want))
	}
}

// A download that began keeps its bytes.
func TestDownloadKeepsItsBytes(t *testing.T) {
	d := openDoor(t, Config{})
	c := d.bucket("alice", "keep")
	old := randomBytes(8<<20, 9)
	key := aws.String("k")
	if _, err := c.PutObject(bg, &awss3.PutObjectInput{Bucket: aws.String("keep"), Key: key, Body: bytes.NewReader(old)}); err != nil {
		t.Fatal(err)
	}
	out, err := c.GetObject(bg, &awss3.GetObjectInput{Bucket: aws.String("keep"), Key: key})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Body.Close()
	put(t, c, "keep", "k", "new")
	if _, err := d.fs.Collect(bg); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(out.Body)
	if err != nil || !bytes.Equal(got, old) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if get(t, c, "keep", "k") != "new" {
		t.Error("not replaced")
	}
}

// TestLongestComplete: a document of all parts with all checksums fits, however a
// program prints it.
func TestLongestComplete(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "long")
	indent := func(b *bytes.Buffer, depth int) { b.WriteString("\r\n" + strings.Repeat(" ", 8*depth)) }
	var b bytes.Buffer
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + "\r\n<CompleteMultipartUpload xmlns=\"" + xmlNamespace + "\">")
	for n := range maxParts {
		indent(&b, 1)
		b.WriteString("<Part>")
		for _, f := range [][2]string{
			{"PartNumber", fmt.Sprint(n + 1)}, {"ETag", "&quot;" + strings.Repeat("0123456789abcdef", 2) + "&quot;"},
			{"ChecksumCRC32", encode64(make([]byte, 4))}, {"ChecksumCRC32C", encode64(make([]byte, 4))},
			{"ChecksumCRC64NVME", encode64(make([]byte, 8))}, {"ChecksumSHA1", encode64(make([]byte, 20))},
			{"ChecksumSHA256", encode64(make([]byte, 32))},
		} {
			indent(&b, 2)
			fmt.Fprintf(&b, "<%s>%s</%[1]s>", f[0], f[1])
		}
		indent(&b, 1)
		b.WriteString("</Part>")
	}
	b.WriteString("\r\n</CompleteMultipartUpload>\r\n")
	if b.Len() < 5_000_000 {
		t.Errorf("%d bytes are no long document", b.Len())
	}
	d.wantRaw("alice", "POST", "/long/k?uploadId=none", b.Bytes(), nil, 404, "NoSuchUpload")
	d.wantRaw("alice", "POST", "/long/k?uploadId=none", make([]byte, completeBounds.bytes+1), nil, 400, "MaxMessageLengthExceeded")
}
