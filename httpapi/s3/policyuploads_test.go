package s3

import (
	"strings"
	"testing"
)

// uploadOf begins an upload and returns the target of its parts.
func (d *door) uploadOf(user, key string, header map[string]string) (target string) {
	d.t.Helper()
	_, started := d.wantRaw(user, "POST", key+"?uploads", nil, header, 200, "<UploadId>")
	_, id, _ := strings.Cut(started, "<UploadId>")
	id, _, _ = strings.Cut(id, "<")
	return key + "?uploadId=" + escape(id)
}

func completing(etag string) []byte {
	return []byte("<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>" + etag + "</ETag></Part></CompleteMultipartUpload>")
}

// TestPolicyOfCreation: s3:ObjectCreationOperation exempts what makes no object from a
// demand for conditions, as the S3 user guide has it ("Enforce conditional writes").
func TestPolicyOfCreation(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "once")
	d.wantRaw("alice", "PUT", "/once/source", []byte("v"), nil, 200, "")
	const put = `"Principal":BOB,"Action":"s3:PutObject","Resource":"BKT/*","Condition":`
	once := map[string]string{"If-None-Match": "*"}
	for i, policy := range [][]string{
		{`{"Effect":"Allow",` + put + `{"Null":{"s3:if-none-match":"false"}}}`, `{"Effect":"Allow",` + put + `{"Bool":{"s3:ObjectCreationOperation":"false"}}}`,
			`{"Effect":"Allow","Principal":BOB,"Action":"s3:GetObject","Resource":"BKT/*"}`},
		{`{"Effect":"Allow","Principal":BOB,"Action":["s3:PutObject","s3:GetObject"],"Resource":"BKT/*"}`,
			`{"Effect":"Deny",` + put + `{"Null":{"s3:if-none-match":"true"},"Bool":{"s3:ObjectCreationOperation":"true"}}}`},
	} {
		key := "/once/" + string(rune('a'+i))
		d.setPolicy("once", policy...)
		d.wantRaw("bob", "PUT", key+"/put", []byte("v"), nil, 403, "AccessDenied")
		d.wantRaw("bob", "PUT", key+"/put", []byte("v"), once, 200, "")
		d.wantRaw("bob", "PUT", key+"/copy", nil, map[string]string{"X-Amz-Copy-Source": "/once/source"}, 403, "AccessDenied")
		d.wantRaw("bob", "PUT", key+"/append", []byte("v"), map[string]string{"X-Amz-Write-Offset-Bytes": "0"}, 403, "AccessDenied")
		parts := d.uploadOf("bob", key+"/parts", nil)
		res, _ := d.wantRaw("bob", "PUT", parts+"&partNumber=1", []byte("v"), nil, 200, "")
		d.wantRaw("bob", "PUT", parts+"&partNumber=2", nil, map[string]string{"X-Amz-Copy-Source": "/once/source"}, 200, "")
		d.wantRaw("bob", "POST", parts, completing(res.Header.Get("ETag")), nil, 403, "AccessDenied")
		d.wantRaw("bob", "POST", parts, completing(res.Header.Get("ETag")), once, 200, "")
	}
}

// TestPolicyOfUploadTags: the tags of an upload are the request's that begins it, and no
// other's: a demand for them on s3:PutObject refuses parts, as at Amazon, unless it spares
// what makes no object; on s3:PutObjectTagging it holds for uploads.
func TestPolicyOfUploadTags(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "tags")
	red, blue := map[string]string{"X-Amz-Tagging": "team=red"}, map[string]string{"X-Amz-Tagging": "team=blue"}
	const demand = `,"Resource":"BKT/*","Condition":{"StringEquals":{"s3:RequestObjectTag/team":"red"}}}`
	d.setPolicy("tags", `{"Effect":"Allow","Principal":BOB,"Action":["s3:PutObject","s3:PutObjectTagging"]`+demand)
	d.wantRaw("bob", "POST", "/tags/k?uploads", nil, blue, 403, "AccessDenied")
	parts := d.uploadOf("bob", "/tags/k", red)
	d.wantRaw("bob", "PUT", parts+"&partNumber=1", []byte("v"), nil, 403, "AccessDenied")
	d.wantRaw("bob", "PUT", parts+"&partNumber=1", []byte("v"), red, 403, "AccessDenied") // stores none
	d.setPolicy("tags", `{"Effect":"Allow","Principal":BOB,"Action":"s3:PutObject","Resource":"BKT/*"}`,
		`{"Effect":"Allow","Principal":BOB,"Action":"s3:PutObjectTagging"`+demand)
	d.wantRaw("bob", "POST", "/tags/k?uploads", nil, blue, 403, "AccessDenied")
	parts = d.uploadOf("bob", "/tags/k", red)
	res, _ := d.wantRaw("bob", "PUT", parts+"&partNumber=1", []byte("v"), nil, 200, "")
	d.wantRaw("bob", "POST", parts, completing(res.Header.Get("ETag")), nil, 200, "")
	d.wantRaw("alice", "GET", "/tags/k?tagging", nil, nil, 200, "<Value>red</Value>")
}
