package s3

import (
	"bytes"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
)

// Appending with an SDK, whose checksums go along, and byte by byte.
func TestAppend(t *testing.T) {
	d := openDoor(t, Config{})
	c := d.bucket("alice", "app")
	var all []byte
	for i, n := range []int{3, 100_000, 1, 5_000_000} {
		body := bytes.Repeat([]byte{byte('a' + i)}, n)
		out, err := c.PutObject(bg, &awss3.PutObjectInput{Bucket: aws.String("app"), Key: aws.String("log"), Body: bytes.NewReader(body), WriteOffsetBytes: aws.Int64(int64(len(all)))})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, body...)
		if aws.ToInt64(out.Size) != int64(len(all)) && i > 0 {
			t.Errorf("size %d, want %d", aws.ToInt64(out.Size), len(all))
		}
		if _, got := d.wantRaw("alice", "GET", "/app/log", nil, nil, 200, ""); got != string(all) {
			t.Errorf("%d bytes, want %d", len(got), len(all))
		}
	}
	d.wantRaw("alice", "PUT", "/app/k", []byte("abc"), map[string]string{"X-Amz-Acl": "public-read"}, 200, "")
	const off = "X-Amz-Write-Offset-Bytes"
	for _, c := range []struct {
		who, target, body string
		header            []string
		status            int
		says              string
	}{
		{"alice", "/app/k", "d", []string{off, "2"}, 400, "<Code>InvalidWriteOffset</Code><Message>The write offset value that you specified does not match the current object size.</Message>"},
		{"alice", "/app/k", "d", []string{off, "-1"}, 400, "InvalidArgument"},
		{"alice", "/app/k", "d", []string{off, "x"}, 400, "<ArgumentName>x-amz-write-offset-bytes</ArgumentName>"},
		{"alice", "/app/k", "", []string{off, "3"}, 400, "Request body cannot be empty when 'write offset' is specified."},
		{"alice", "/app/k", "d", []string{off, "3", "X-Amz-Meta-A", "b"}, 400, "Cannot specify both a write offset value and user-defined object metadata for existing objects."},
		{"alice", "/app/k", "d", []string{off, "3", "X-Amz-Acl", "private"}, 400, "InvalidRequest"},
		{"alice", "/app/k", "d", []string{off, "3", "If-Match", `"no"`}, 412, "PreconditionFailed"},
		{"alice", "/app/k", "d", []string{off, "3", "X-Amz-Checksum-Crc32", "AAAAAA=="}, 400, "BadDigest"},
		{"alice", "/app/none", "d", []string{off, "3"}, 404, "NoSuchKey"},
		{"bob", "/app/k", "d", []string{off, "3"}, 403, "AccessDenied"},
		{"bob", "/app/k", "d", []string{off, "2"}, 403, "AccessDenied"},
		{"", "/app/none", "d", []string{off, "0"}, 403, "AccessDenied"},
		{"alice", "/app/new", "d", []string{off, "0", "X-Amz-Meta-A", "b"}, 200, ""},
		{"alice", "/app/k", "def", []string{off, "3"}, 200, ""},
	} {
		h := map[string]string{}
		for i := 0; i < len(c.header); i += 2 {
			h[c.header[i]] = c.header[i+1]
		}
		d.wantRaw(c.who, "PUT", c.target, []byte(c.body), h, c.status, c.says)
	}
	d.wantRaw("", "GET", "/app/k", nil, nil, 200, "abcdef") // its ACL stays
	// Who may write and not read does not learn the size.
	d.wantRaw("alice", "PUT", "/app?acl", nil, map[string]string{"X-Amz-Grant-Write": "id=" + d.userID("bob")}, 200, "")
	d.wantRaw("alice", "PUT", "/app/k?acl", nil, map[string]string{"X-Amz-Acl": "private"}, 200, "")
	for _, at := range []string{"0", "6", "7"} {
		d.wantRaw("bob", "PUT", "/app/k", []byte("x"), map[string]string{off: at}, 403, "AccessDenied")
	}
}

// What is for one operation is refused by others, not ignored.
func TestMisplacedHeaders(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "app")
	d.wantRaw("alice", "PUT", "/app/k", []byte("abc"), nil, 200, "")
	d.wantRaw("alice", "PUT", "/app/c", nil, map[string]string{"X-Amz-Copy-Source": "/app/k", "X-Amz-Write-Offset-Bytes": "0"}, 501, "x-amz-write-offset-bytes")
	d.wantRaw("alice", "POST", "/app/c?uploads", nil, map[string]string{"X-Amz-Write-Offset-Bytes": "0"}, 501, "x-amz-write-offset-bytes")
	d.wantRaw("alice", "PUT", "/app/c", nil, map[string]string{"X-Amz-Rename-Source": "k"}, 501, "x-amz-rename-source")
	d.wantRaw("alice", "GET", "/app/c", nil, nil, 404, "NoSuchKey")
}
