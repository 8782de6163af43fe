package s3

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"ogw/httpapi/sigv4"
	"ogw/vfs"
)

// What current clients send, as it was captured from them, request by request.
// The clients themselves run in clients_test.go where they are installed.
func TestOnTheWire(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "wire")
	for name, test := range map[string]func(*testing.T, *door){
		"01 botocore expects 100 for an empty body":     wireExpectEmpty,
		"02 boto3 over HTTPS: chunks without a length":  wireUnsignedTrailer,
		"03 three ways to sign a body over plain HTTP":  wirePlainBodies,
		"04 CRC64NVME where the client sends nothing":   wireDefaultChecksum,
		"05 multipart with checksums and quoted ETags":  wireMultipart,
		"06 DeleteObjects with a CRC32 alone":           wireDeleteObjects,
		"07 checksum mode in the query, range If-Match": wireChecksumMode,
		"08 x-id, slashes and encoding-type":            wireQueries,
		"09 Signature Version 2 in URLs and forms":      wireVersion2,
		"10 a presigned checksum of nothing":            wirePresignedChecksum,
		"11 expectations that nobody can meet":          wireExpectOther,
	} {
		t.Run(name, func(t *testing.T) {
			d := *d
			d.t = t
			test(t, &d)
		})
	}
}

func crc32Text(b []byte) string {
	return encode64([]byte{byte(crc32.ChecksumIEEE(b) >> 24), byte(crc32.ChecksumIEEE(b) >> 16), byte(crc32.ChecksumIEEE(b) >> 8), byte(crc32.ChecksumIEEE(b))})
}

// wireExpectEmpty: botocore expects a 100 with an empty body too, waits for
// it, and goes on on the same connection.
func wireExpectEmpty(t *testing.T, d *door) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(d.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute))
	in := bufio.NewReader(conn)
	for i, size := range []int{0, 20 << 20, 0, 1} {
		body := randomBytes(size, byte(i))
		r := d.request("PUT", fmt.Sprintf("/wire/expect-%d", i), body, map[string]string{"Expect": "100-continue"})
		d.sign(r, "alice", body, time.Now())
		var head bytes.Buffer
		fmt.Fprintf(&head, "PUT %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n", r.URL.RequestURI(), r.URL.Host, size)
		if err := r.Header.Write(&head); err != nil {
			t.Fatal(err)
		}
		head.WriteString("\r\n")
		if _, err := conn.Write(head.Bytes()); err != nil {
			t.Fatal(err)
		}
		line, err := in.ReadString('\n')
		if err != nil || line != "HTTP/1.1 100 Continue\r\n" {
			t.Fatalf("request %d of %d bytes: %q %v, want 100 first", i, size, line, err)
		}
		if line, err := in.ReadString('\n'); line != "\r\n" {
			t.Fatalf("%q %v", line, err)
		}
		if _, err := conn.Write(body); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(in, r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != 200 {
			t.Errorf("request %d of %d bytes: %s", i, size, res.Status)
		}
	}
}

// wireExpectOther: an expectation that is empty is none. Of any other than 100-continue
// the server says that it cannot meet it (RFC 9110, section 10.1.1), before the body is
// sent, and takes nothing.
func wireExpectOther(t *testing.T, d *door) {
	for expect, status := range map[string]int{"": 200, "200-ok": 417, "100-continue-please": 417} {
		key := "/wire/expect-other-" + expect
		r := d.request("PUT", key, []byte("v"), nil)
		d.sign(r, "alice", []byte("v"), time.Now())
		conn, err := net.Dial("tcp", r.URL.Host)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(time.Minute))
		fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: %s\r\nExpect: %s\r\nContent-Length: 1\r\n", key, r.URL.Host, expect)
		if err := r.Header.Write(conn); err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, "\r\nv")
		res, err := http.ReadResponse(bufio.NewReader(conn), r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != status || res.Close != (status != 200) {
			t.Errorf("Expect %q: %s, closes: %v", expect, res.Status, res.Close)
		}
		if kept, _ := d.raw("alice", "GET", key, nil, nil); (kept.StatusCode == 200) != (status == 200) {
			t.Errorf("Expect %q: then GET %s", expect, kept.Status)
		}
	}
}

// chunkedBody encodes body as aws-chunked in pieces of size bytes.
func chunkedBody(body []byte, size int, trailer string) []byte {
	var b bytes.Buffer
	for rest := body; len(rest) > 0; {
		n := min(size, len(rest))
		fmt.Fprintf(&b, "%x\r\n%s\r\n", n, rest[:n])
		rest = rest[n:]
	}
	b.WriteString("0\r\n" + trailer + "\r\n\r\n")
	return b.Bytes()
}

func trailerHeaders(size int) map[string]string {
	return map[string]string{
		"X-Amz-Content-Sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER", "X-Amz-Trailer": "x-amz-checksum-crc32",
		"X-Amz-Decoded-Content-Length": fmt.Sprint(size), "Content-Encoding": "aws-chunked", "X-Amz-Sdk-Checksum-Algorithm": "CRC32",
	}
}

// wireUnsignedTrailer: Transfer-Encoding chunked around aws-chunked, no
// Content-Length, a CRC32 behind the body. aws-chunked is never stored.
func wireUnsignedTrailer(t *testing.T, d *door) {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	for _, size := range []int{0, 5, 70_000, 3 << 20} {
		for _, encoding := range []string{"aws-chunked", "gzip,aws-chunked", "aws-chunked, gzip"} {
			body := randomBytes(size, 2)
			send := func(sum string) *http.Response {
				h := trailerHeaders(size)
				h["Content-Encoding"] = encoding
				over := *d
				over.url = d.tls
				r := over.request("PUT", "/wire/trailer", nil, h)
				r.Body = io.NopCloser(bytes.NewReader(chunkedBody(body, 64<<10, "x-amz-checksum-crc32:"+sum)))
				r.ContentLength = -1
				over.sign(r, "alice", nil, time.Now())
				res, err := client.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close()
				return res
			}
			if res := send(crc32Text(body)); res.StatusCode != 200 {
				t.Fatalf("%d bytes: %s", size, res.Status)
			}
			want := strings.TrimSuffix(strings.TrimPrefix(strings.ReplaceAll(encoding, "aws-chunked", ""), ", "), ",")
			res, got := d.raw("alice", "GET", "/wire/trailer", nil, map[string]string{"X-Amz-Checksum-Mode": "ENABLED", "Accept-Encoding": "identity"})
			if got != string(body) || res.Header.Get("Content-Encoding") != want || res.Header.Get("X-Amz-Checksum-Crc32") != crc32Text(body) {
				t.Errorf("%d bytes, %s: got %d, %v", size, encoding, len(got), res.Header)
			}
			if res := send(crc32Text([]byte("other"))); res.StatusCode != 400 {
				t.Errorf("%d bytes, wrong trailer: %s", size, res.Status)
			}
		}
	}
}

// wirePlainBodies: boto3 signs the SHA-256 and adds a CRC32; JavaScript
// streams with a trailer and one small chunk a write; mc signs each chunk and
// says nothing in Content-Encoding.
func wirePlainBodies(t *testing.T, d *door) {
	body := randomBytes(100_000, 3)
	d.wantRaw("alice", "PUT", "/wire/boto", body, map[string]string{
		"X-Amz-Checksum-Crc32": crc32Text(body), "X-Amz-Sdk-Checksum-Algorithm": "CRC32"}, 200, "")
	d.wantRaw("alice", "PUT", "/wire/js", chunkedBody(body, 7, "x-amz-checksum-crc32:"+crc32Text(body)), trailerHeaders(len(body)), 200, "")
	mc := d.minio("alice")
	if err := mc.putStream("wire", "mc", body, false); err != nil {
		t.Fatal(err)
	}
	if err := mc.putStream("wire", "mc-trailer", body, true); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"boto", "js", "mc", "mc-trailer"} {
		res, got := d.raw("alice", "GET", "/wire/"+key, nil, nil)
		if got != string(body) || res.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s: %d bytes, %v", key, len(got), res.Header)
		}
	}
}

// wireDefaultChecksum: what S3 computes when the client sends no checksum.
func wireDefaultChecksum(t *testing.T, d *door) {
	body := randomBytes(300_000, 4)
	want := algorithms[0].make()
	want.Write(body)
	put, _ := d.wantRaw("alice", "PUT", "/wire/plain", body, nil, 200, "")
	head, _ := d.wantRaw("alice", "HEAD", "/wire/plain", nil, map[string]string{"X-Amz-Checksum-Mode": "ENABLED"}, 200, "")
	for _, res := range []*http.Response{put, head} {
		if got := res.Header.Get("X-Amz-Checksum-Crc64nvme"); got != encode64(want.Sum(nil)) || res.Header.Get("X-Amz-Checksum-Type") != "FULL_OBJECT" {
			t.Errorf("%v", res.Header)
		}
	}
}

// wireMultipart: "?uploads=" with an algorithm, parts with CRC32, a list of
// parts with ETags quoted in three ways.
func wireMultipart(t *testing.T, d *door) {
	_, got := d.wantRaw("alice", "POST", "/wire/multi?uploads=", nil, map[string]string{"X-Amz-Checksum-Algorithm": "CRC32"}, 200, "<UploadId>")
	upload := got[strings.Index(got, "<UploadId>")+len("<UploadId>") : strings.Index(got, "</UploadId>")]
	parts := [][]byte{randomBytes(5<<20, 5), randomBytes(5<<20, 6), randomBytes(10, 7)}
	var list, whole bytes.Buffer
	list.WriteString(`<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">`)
	for i, p := range parts {
		res, _ := d.wantRaw("alice", "PUT", fmt.Sprintf("/wire/multi?partNumber=%d&uploadId=%s&x-id=UploadPart", i+1, upload), p,
			map[string]string{"X-Amz-Checksum-Crc32": crc32Text(p)}, 200, "")
		quote := []string{`"`, "&quot;", "&#34;"}[i]
		etag := quote + strings.Trim(res.Header.Get("Etag"), `"`) + quote
		fmt.Fprintf(&list, "<Part><ETag>%s</ETag><ChecksumCRC32>%s</ChecksumCRC32><PartNumber>%d</PartNumber></Part>", etag, crc32Text(p), i+1)
		whole.Write(p)
	}
	list.WriteString("</CompleteMultipartUpload>")
	wrong := bytes.Replace(list.Bytes(), []byte(crc32Text(parts[2])), []byte(crc32Text(nil)), 1)
	d.wantRaw("alice", "POST", "/wire/multi?uploadId="+upload, wrong, nil, 400, "<Code>InvalidPart<")
	d.wantRaw("alice", "POST", "/wire/multi?uploadId="+upload, list.Bytes(), nil, 200, "-3&quot;</ETag>")
	if _, got := d.raw("alice", "GET", "/wire/multi", nil, nil); got != whole.String() {
		t.Errorf("%d bytes", len(got))
	}
}

// wireDeleteObjects: "?delete" with and without "=", no Content-MD5.
func wireDeleteObjects(t *testing.T, d *door) {
	for _, query := range []string{"delete", "delete="} {
		d.wantRaw("alice", "PUT", "/wire/gone", []byte("x"), nil, 200, "")
		body := []byte(`<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Object><Key>gone</Key></Object></Delete>`)
		wrong := map[string]string{"X-Amz-Sdk-Checksum-Algorithm": "CRC32", "X-Amz-Checksum-Crc32": crc32Text(nil)}
		d.wantRaw("alice", "POST", "/wire?"+query, body, wrong, 400, "BadDigest")
		d.wantRaw("alice", "HEAD", "/wire/gone", nil, nil, 200, "")
		right := map[string]string{"X-Amz-Sdk-Checksum-Algorithm": "CRC32", "X-Amz-Checksum-Crc32": crc32Text(body)}
		d.wantRaw("alice", "POST", "/wire?"+query, body, right, 200, "<Deleted><Key>gone</Key></Deleted>")
		d.wantRaw("alice", "HEAD", "/wire/gone", nil, nil, 404, "")
	}
}

// presign signs a request in its query, as user.
func (d *door) presign(user, method, target string) string {
	d.t.Helper()
	r := d.request(method, target, nil, nil)
	q := r.URL.Query()
	q.Set("X-Amz-Expires", "60")
	r.URL.RawQuery = q.Encode()
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	creds := aws.Credentials{AccessKeyID: "KEY" + user, SecretAccessKey: secretOf(user)}
	u, _, err := signer.PresignHTTP(bg, creds, r, "UNSIGNED-PAYLOAD", "s3", "us-east-1", time.Now())
	if err != nil {
		d.t.Fatal(err)
	}
	return strings.TrimPrefix(u, d.url)
}

// wireChecksumMode: JavaScript presigns the checksum mode in the query; Go's
// downloader reads ranges of one version.
func wireChecksumMode(t *testing.T, d *door) {
	body := randomBytes(50_000, 8)
	put, _ := d.wantRaw("alice", "PUT", "/wire/mode", body, nil, 200, "")
	res, got := d.wantRaw("", "GET", d.presign("alice", "GET", "/wire/mode?x-amz-checksum-mode=ENABLED&x-id=GetObject"), nil, nil, 200, "")
	if got != string(body) || res.Header.Get("X-Amz-Checksum-Crc64nvme") == "" {
		t.Errorf("%d bytes, %v", len(got), res.Header)
	}
	etag := put.Header.Get("Etag")
	_, got = d.wantRaw("alice", "GET", "/wire/mode", nil, map[string]string{"Range": "bytes=1000-1999", "If-Match": etag}, 206, "")
	if got != string(body[1000:2000]) {
		t.Error("another range")
	}
	d.wantRaw("alice", "GET", "/wire/mode", nil, map[string]string{"Range": "bytes=1000-1999", "If-Match": `"other"`}, 412, "PreconditionFailed")
}

// wireQueries: x-id is signed like any parameter; "/bucket/" is "/bucket";
// encoding-type=url writes %20 and %2B, never "+".
func wireQueries(t *testing.T, d *door) {
	d.wantRaw("alice", "PUT", "/wire/q/a%20b%2Bc?x-id=PutObject", []byte("x"), nil, 200, "")
	d.wantRaw("alice", "PUT", "/wire/q/a/b?x-id=PutObject", []byte("x"), nil, 200, "")
	d.wantRaw("alice", "PUT", "/wire/q/a.b?x-id=PutObject", []byte("x"), nil, 200, "")
	for _, target := range []string{"/wire?list-type=2&prefix=q%2F&encoding-type=url", "/wire/?list-type=2&prefix=q%2F&encoding-type=url", "/wire/?encoding-type=url&prefix=q/"} {
		_, got := d.wantRaw("alice", "GET", target, nil, nil, 200, "<Key>q/a%20b%2Bc</Key>")
		// Whole keys are sorted by their bytes: ' ' before '.' before '/'.
		space, dot, slash := strings.Index(got, "a%20b"), strings.Index(got, "a.b"), strings.Index(got, "a/b")
		if !(space < dot && dot < slash) {
			t.Errorf("%s: order: %s", target, got)
		}
	}
	d.wantRaw("alice", "HEAD", "/wire/", nil, nil, 200, "")
	d.wantRaw("alice", "GET", "/wire/?location", nil, nil, 200, "LocationConstraint")
}

// macOfV2 signs text as Version 2 does.
func macOfV2(user, text string) string {
	h := hmac.New(sha1.New, []byte(secretOf(user)))
	h.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// wireVersion2: what boto3 in us-east-1, `aws s3 presign` and `s3cmd signurl`
// make; headers take a switch.
func wireVersion2(t *testing.T, d *door) {
	d.wantRaw("alice", "PUT", "/wire/v2", []byte("hello"), nil, 200, "")
	expires := fmt.Sprint(time.Now().Add(time.Minute).Unix())
	target := func(user, key, expires string) string {
		mac := macOfV2(user, "GET\n\n\n"+expires+"\n/wire/"+key)
		return "/wire/" + key + "?AWSAccessKeyId=KEY" + user + "&Expires=" + expires + "&Signature=" + url.QueryEscape(mac)
	}
	d.wantRaw("", "GET", target("alice", "v2", expires), nil, nil, 200, "hello")
	d.wantRaw("", "GET", strings.Replace(target("alice", "v2", expires), "/v2?", "/v3?", 1), nil, nil, 403, "SignatureDoesNotMatch")
	d.wantRaw("", "GET", target("alice", "v2", fmt.Sprint(time.Now().Add(-time.Minute).Unix())), nil, nil, 403, "AccessDenied")
	policy := encode64([]byte(`{"expiration":"` + time.Now().Add(time.Minute).UTC().Format("2006-01-02T15:04:05Z") + `","conditions":[{"bucket":"wire"},{"key":"form"}]}`))
	kind, body := form([][2]string{{"key", "form"}, {"AWSAccessKeyId", "KEYalice"}, {"policy", policy}, {"signature", macOfV2("alice", policy)}}, "posted")
	d.wantRaw("", "POST", "/wire", body, map[string]string{"Content-Type": kind}, 204, "")
	d.wantRaw("alice", "GET", "/wire/form", nil, nil, 200, "posted")
	d.wantRaw("", "GET", "/wire/v2", nil, map[string]string{"Authorization": "AWS KEYalice:" + encode64(make([]byte, 20))}, 400, "InvalidRequest")
	off := openDoor(t, Config{V2: sigv4.V2None})
	off.bucket("alice", "wire")
	off.wantRaw("alice", "PUT", "/wire/v2", []byte("hello"), nil, 200, "")
	off.wantRaw("", "GET", target("alice", "v2", expires), nil, nil, 400, "InvalidRequest")
	off.wantRaw("", "POST", "/wire", body, map[string]string{"Content-Type": kind}, 400, "InvalidRequest")
}

// wirePresignedChecksum: JavaScript presigns the CRC32 of an empty body with
// a PUT whose body it does not know yet.
func wirePresignedChecksum(t *testing.T, d *door) {
	target := d.presign("alice", "PUT", "/wire/late?x-amz-checksum-crc32=AAAAAA%3D%3D&x-amz-sdk-checksum-algorithm=CRC32&x-id=PutObject")
	d.wantRaw("", "PUT", target, []byte("not empty"), nil, 200, "")
	d.wantRaw("alice", "GET", "/wire/late", nil, nil, 200, "not empty")
	// What is asked for beside them is obeyed.
	target = d.presign("alice", "POST", "/wire/late?uploads=&x-amz-checksum-algorithm=CRC32&x-amz-checksum-type=FULL_OBJECT")
	res, _ := d.wantRaw("", "POST", target, nil, nil, 200, "<UploadId>")
	if h := res.Header; h.Get("X-Amz-Checksum-Algorithm") != "CRC32" || h.Get("X-Amz-Checksum-Type") != "FULL_OBJECT" {
		t.Error(h)
	}
}

// Whatever is wrong with a PUT, the object before it stays, and nothing of
// the new one is left: no bytes, no parts, no directories.
func TestBadPutsLeaveNothing(t *testing.T) {
	d := openDoor(t, Config{})
	c := d.bucket("alice", "bad")
	put(t, c, "bad", "dir/k", "before")
	for _, size := range []int{1000, 100_000, 3 << 20} {
		body := randomBytes(size, 9)
		for name, v := range map[string]struct {
			header map[string]string
			change func(*http.Request)
			status int
			code   string
		}{
			"malformed signature": {nil, func(r *http.Request) { r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=x") }, 400, "AuthorizationHeaderMalformed"},
			"wrong signature": {nil, func(r *http.Request) {
				r.Header.Set("X-Amz-Date", time.Now().UTC().Add(time.Second).Format("20060102T150405Z"))
			}, 403, "SignatureDoesNotMatch"},
			"clock off":             {nil, func(r *http.Request) { d.sign(r, "alice", body, time.Now().Add(-16*time.Minute)) }, 403, "RequestTimeTooSkewed"},
			"wrong SHA-256":         {map[string]string{"X-Amz-Content-Sha256": hex.EncodeToString(make([]byte, 32))}, nil, 400, "XAmzContentSHA256Mismatch"},
			"wrong MD5":             {map[string]string{"Content-Md5": encode64(make([]byte, 16))}, nil, 400, "BadDigest"},
			"MD5 that is none":      {map[string]string{"Content-Md5": "abc"}, nil, 400, "InvalidDigest"},
			"wrong CRC32":           {map[string]string{"X-Amz-Checksum-Crc32": crc32Text(nil)}, nil, 400, "BadDigest"},
			"wrong CRC64NVME":       {map[string]string{"X-Amz-Checksum-Crc64nvme": encode64(make([]byte, 8))}, nil, 400, "BadDigest"},
			"unknown storage class": {map[string]string{"X-Amz-Storage-Class": "SHELF"}, nil, 400, "InvalidStorageClass"},
			"encryption":            {map[string]string{"X-Amz-Server-Side-Encryption": "AES256"}, nil, 501, "NotImplemented"},
			"large metadata":        {map[string]string{"X-Amz-Meta-A": strings.Repeat("x", 3000)}, nil, 400, "MetadataTooLarge"},
			"no such bucket":        {nil, func(r *http.Request) { r.URL.Path = "/nowhere/k"; d.sign(r, "alice", body, time.Now()) }, 404, "NoSuchBucket"},
			"long key": {nil, func(r *http.Request) {
				r.URL.Path = "/bad/" + strings.Repeat("k", 1025)
				d.sign(r, "alice", body, time.Now())
			}, 400, "KeyTooLongError"},
			"condition": {map[string]string{"If-None-Match": "*"}, func(r *http.Request) {}, 412, "PreconditionFailed"},
			"short body": {trailerHeaders(size + 1), func(r *http.Request) {
				r.Body = io.NopCloser(bytes.NewReader(chunkedBody(body, 64<<10, "x-amz-checksum-crc32:"+crc32Text(body))))
				r.ContentLength = -1
				d.sign(r, "alice", nil, time.Now())
			}, 400, "IncompleteBody"},
			"long body": {trailerHeaders(size - 1), func(r *http.Request) {
				r.Body = io.NopCloser(bytes.NewReader(chunkedBody(body, 64<<10, "x-amz-checksum-crc32:"+crc32Text(body))))
				r.ContentLength = -1
				d.sign(r, "alice", nil, time.Now())
			}, 400, "IncompleteBody"},
		} {
			for _, key := range []string{"/bad/dir/k", "/bad/new/deep/k"} {
				if name == "condition" && key != "/bad/dir/k" {
					continue
				}
				r := d.request("PUT", key, body, v.header)
				d.sign(r, "alice", body, time.Now())
				if v.change != nil {
					v.change(r)
				}
				if res, got := d.do(r); res.StatusCode != v.status || !strings.Contains(got, "<Code>"+v.code+"<") {
					t.Errorf("%s, %d bytes: %d %s", name, size, res.StatusCode, got)
				}
			}
		}
		if got := get(t, c, "bad", "dir/k"); got != "before" {
			t.Errorf("the object holds %d bytes", len(got))
		}
		if _, list := d.raw("alice", "GET", "/bad?list-type=2", nil, nil); strings.Count(list, "<Key>") != 1 {
			t.Errorf("%s", list)
		}
	}
	d.wantClean(1)
}

// wantClean fails unless the namespace holds so many small files and no more.
func (d *door) wantClean(files int64) {
	d.t.Helper()
	rep, err := d.fs.Check(bg, vfs.CheckOptions{Data: true})
	if err != nil || len(rep.Problems) > 0 {
		d.t.Errorf("check: %v %+v", err, rep.Problems)
	}
	if rep.Files != files || rep.Blobs != 0 {
		d.t.Errorf("%d files and %d blobs are there, want %d and 0", rep.Files, rep.Blobs, files)
	}
}

// Requests that are wrong in themselves, each with its error.
func TestBadRequests(t *testing.T) {
	d := openDoor(t, Config{})
	put(t, d.bucket("alice", "bad"), "bad", "k", "0123456789")
	longName := strings.Repeat("b", 256)
	for name, v := range map[string]struct {
		method, target, body string
		header               map[string]string
		status               int
		code                 string
	}{
		"XML: not well-formed delete":     {"POST", "/bad?delete", "<Delete><Object>", nil, 400, "MalformedXML"},
		"XML: delete of nothing":          {"POST", "/bad?delete", "<Delete></Delete>", nil, 400, "MalformedXML"},
		"XML: delete without a key":       {"POST", "/bad?delete", "<Delete><Object/></Delete>", nil, 400, "MalformedXML"},
		"XML: entity":                     {"POST", "/bad?delete", `<!DOCTYPE x [<!ENTITY e "k">]><Delete><Object><Key>&e;</Key></Object></Delete>`, nil, 400, "MalformedXML"},
		"XML: another document":           {"POST", "/bad?delete", "<Other/>", nil, 400, "MalformedXML"},
		"XML: no body":                    {"POST", "/bad?delete", "", nil, 400, "MissingRequestBodyError"},
		"XML: ACL":                        {"PUT", "/bad?acl", "<AccessControlPolicy>", nil, 400, "MalformedACLError"},
		"XML: tagging":                    {"PUT", "/bad/k?tagging", "<Tagging><TagSet><Tag/>", nil, 400, "MalformedXML"},
		"XML: bucket configuration":       {"PUT", "/new-bucket", "<CreateBucketConfiguration>", nil, 400, "MalformedXML"},
		"range: behind the end":           {"GET", "/bad/k", "", map[string]string{"Range": "bytes=10-"}, 416, "InvalidRange"},
		"range: of no bytes":              {"GET", "/bad/k", "", map[string]string{"Range": "bytes=-0"}, 416, "InvalidRange"},
		"range: and a part number":        {"GET", "/bad/k?partNumber=1", "", map[string]string{"Range": "bytes=0-1"}, 400, "InvalidRequest"},
		"part number: none":               {"GET", "/bad/k?partNumber=x", "", nil, 400, "InvalidArgument"},
		"part number: beyond the object":  {"GET", "/bad/k?partNumber=2", "", nil, 416, "InvalidPartNumber"},
		"bucket name: short":              {"PUT", "/ab", "", nil, 400, "InvalidBucketName"},
		"bucket name: long":               {"PUT", "/" + longName, "", nil, 400, "InvalidBucketName"},
		"bucket name: upper case":         {"PUT", "/Bucket", "", nil, 400, "InvalidBucketName"},
		"bucket name: IP address":         {"PUT", "/192.168.1.1", "", nil, 400, "InvalidBucketName"},
		"bucket name: first character":    {"PUT", "/-bucket", "", nil, 400, "InvalidBucketName"},
		"bucket name: last character":     {"PUT", "/bucket.", "", nil, 400, "InvalidBucketName"},
		"bucket name: space":              {"PUT", "/buc%20ket", "", nil, 400, "InvalidBucketName"},
		"key: long":                       {"PUT", "/bad/" + strings.Repeat("k", 1025), "x", nil, 400, "KeyTooLongError"},
		"key: long, read":                 {"GET", "/bad/" + strings.Repeat("k", 1025), "", nil, 400, "KeyTooLongError"},
		"sub-resource: of a bucket":       {"GET", "/bad?inventory", "", nil, 501, "NotImplemented"},
		"sub-resource: of an object":      {"GET", "/bad/k?torrent", "", nil, 501, "NotImplemented"},
		"sub-resource: nobody knows":      {"PUT", "/bad/k?nobody-knows", "x", nil, 501, "NotImplemented"},
		"sub-resource: unknown on delete": {"DELETE", "/bad/k?nobody-knows", "", nil, 501, "NotImplemented"},
		"method: on the service":          {"POST", "/", "", nil, 405, "MethodNotAllowed"},
		"method: on an object":            {"PATCH", "/bad/k", "x", nil, 405, "MethodNotAllowed"},
		"method: form to an object":       {"POST", "/bad/k", "x", nil, 405, "MethodNotAllowed"},
		"list: number of keys":            {"GET", "/bad?max-keys=-1", "", nil, 400, "InvalidArgument"},
		"list: number that is none":       {"GET", "/bad?list-type=2&max-keys=x", "", nil, 400, "InvalidArgument"},
		"list: encoding":                  {"GET", "/bad?encoding-type=base64", "", nil, 400, "InvalidArgument"},
		"list: continuation token":        {"GET", "/bad?list-type=2&continuation-token=x", "", nil, 400, "InvalidArgument"},
		"copy: source":                    {"PUT", "/bad/c", "", map[string]string{"X-Amz-Copy-Source": "nothing"}, 400, "InvalidArgument"},
		"copy: onto itself":               {"PUT", "/bad/k", "", map[string]string{"X-Amz-Copy-Source": "/bad/k"}, 400, "InvalidRequest"},
		"upload: unknown":                 {"PUT", "/bad/k?partNumber=1&uploadId=none", "x", nil, 404, "NoSuchUpload"},
		"upload: part number":             {"PUT", "/bad/k?partNumber=10001&uploadId=none", "x", nil, 400, "InvalidArgument"},
	} {
		res, got := d.raw("alice", v.method, v.target, []byte(v.body), v.header)
		if res.StatusCode != v.status || !strings.Contains(got, "<Code>"+v.code+"<") {
			t.Errorf("%s: %d %.400s; want %d %s", name, res.StatusCode, got, v.status, v.code)
		}
	}
	d.wantRaw("alice", "GET", "/bad/k", nil, nil, 200, "0123456789")
	if _, list := d.raw("alice", "GET", "/bad?list-type=2", nil, nil); strings.Count(list, "<Key>") != 1 {
		t.Errorf("%s", list)
	}
	d.wantClean(1)
}

// TestPresignedV2IsObeyed: what a Version 2 URL signs acts as a header would, and
// nothing can be put in its place.
func TestPresignedV2IsObeyed(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "obey")
	d.wantRaw("alice", "PUT", "/obey/a", []byte("of a"), nil, 200, "")
	d.wantRaw("alice", "PUT", "/obey/secret", []byte("of secret"), nil, 200, "")
	expires := fmt.Sprint(time.Now().Add(time.Minute).Unix())
	target := func(digest, kind, headers, query string) string {
		mac := macOfV2("alice", "PUT\n"+digest+"\n"+kind+"\n"+expires+"\n"+headers+"/obey/k")
		return "/obey/k?AWSAccessKeyId=KEYalice&Expires=" + expires + "&Signature=" + url.QueryEscape(mac) + "&" + query
	}
	sum := md5.Sum([]byte("right"))
	digest, crc := encode64(sum[:]), crc32Text([]byte("right"))
	sha := sha256.Sum256([]byte("right"))
	for name, c := range map[string]struct{ url, code string }{
		"Content-MD5":        {target(digest, "", "", "Content-MD5="+url.QueryEscape(digest)), "BadDigest"},
		"checksum":           {target("", "", "x-amz-checksum-crc32:"+crc+"\n", "x-amz-checksum-crc32="+url.QueryEscape(crc)), "BadDigest"},
		"SHA-256":            {target("", "", "x-amz-content-sha256:"+hex.EncodeToString(sha[:])+"\n", "x-amz-content-sha256="+hex.EncodeToString(sha[:])), "XAmzContentSHA256Mismatch"},
		"SHA-256, its title": {target("", "", "x-amz-content-sha256:"+hex.EncodeToString(sha[:])+"\n", "X-Amz-Content-Sha256="+hex.EncodeToString(sha[:])), "XAmzContentSHA256Mismatch"},
	} {
		t.Run(name, func(t *testing.T) {
			d.t = t
			d.wantRaw("", "PUT", c.url, []byte("wrong"), nil, 400, c.code)
			d.wantRaw("", "PUT", c.url, []byte("right"), nil, 200, "")
		})
	}
	d.t = t
	d.wantRaw("", "PUT", target("", "text/x-signed", "", "Content-Type=text/x-signed"), []byte("x"), nil, 200, "")
	if res, _ := d.wantRaw("alice", "GET", "/obey/k", nil, nil, 200, ""); res.Header.Get("Content-Type") != "text/x-signed" {
		t.Errorf("stored as %q", res.Header.Get("Content-Type"))
	}
	copyA := target("", "", "x-amz-copy-source:/obey/a\n", "x-amz-copy-source=/obey/a")
	d.wantRaw("", "PUT", copyA, nil, nil, 200, "")
	d.wantRaw("alice", "GET", "/obey/k", nil, nil, 200, "of a")
	for range 8 { // which of the two counts was chance
		d.wantRaw("", "PUT", copyA+"&X-Amz-Copy-Source=/obey/secret", nil, nil, 400, "AuthorizationQueryParametersError")
	}
	d.wantRaw("alice", "GET", "/obey/k", nil, nil, 200, "of a")
	// Nor by two cases that were both signed with Version 4.
	both := d.presign("alice", "PUT", "/obey/k?x-amz-copy-source=/obey/a&X-Amz-Copy-Source=/obey/secret")
	d.wantRaw("", "PUT", both, nil, nil, 400, "AuthorizationQueryParametersError")
}
