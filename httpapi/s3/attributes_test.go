package s3

import (
	"fmt"
	"strings"
	"testing"
)

func TestGetObjectAttributes(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "attr")
	crc32 := func(b []byte) string {
		a, err := findAlgorithm("CRC32")
		if err != nil {
			t.Fatal(err)
		}
		h := a.make()
		h.Write(b)
		return encode64(h.Sum(nil))
	}
	text := crc32([]byte("text"))
	d.wantRaw("alice", "PUT", "/attr/k", []byte("text"), map[string]string{"X-Amz-Storage-Class": "STANDARD_IA", "X-Amz-Checksum-Crc32": text}, 200, "")
	asks := func(v string, more ...string) map[string]string {
		h := map[string]string{"X-Amz-Object-Attributes": v}
		for i := 0; i < len(more); i += 2 {
			h[more[i]] = more[i+1]
		}
		return h
	}
	_, body := d.raw("alice", "POST", "/attr/parts?uploads", nil, map[string]string{"X-Amz-Checksum-Algorithm": "CRC32"})
	upload := body[strings.Index(body, "<UploadId>")+len("<UploadId>") : strings.Index(body, "</UploadId>")]
	doc := ""
	for _, n := range []int{2, 5, 9} {
		part := randomBytes(5<<20, byte(n))
		sum := map[string]string{"X-Amz-Checksum-Crc32": crc32(part)}
		res, _ := d.wantRaw("alice", "PUT", fmt.Sprintf("/attr/parts?partNumber=%d&uploadId=%s", n, upload), part, sum, 200, "")
		doc += fmt.Sprintf("<Part><PartNumber>%d</PartNumber><ETag>%s</ETag><ChecksumCRC32>%s</ChecksumCRC32></Part>", n, strings.Trim(res.Header.Get("Etag"), `"`), crc32(part))
	}
	d.wantRaw("alice", "POST", "/attr/parts?uploadId="+upload, []byte("<CompleteMultipartUpload>"+doc+"</CompleteMultipartUpload>"), nil, 200, "")
	for _, c := range []struct {
		user, target string
		header       map[string]string
		status       int
		says         string
	}{
		{"alice", "/attr/k?attributes", asks("ETag,Checksum,ObjectParts,StorageClass,ObjectSize"), 200,
			"<ETag>1cb251ec0d568de6a929b520c4aed8d1</ETag><Checksum><ChecksumCRC32>" + text + "</ChecksumCRC32><ChecksumType>FULL_OBJECT</ChecksumType></Checksum><StorageClass>STANDARD_IA</StorageClass><ObjectSize>4</ObjectSize></GetObjectAttributesResponse>"},
		{"alice", "/attr/k?attributes", asks("ObjectSize, ETag"), 200, "Response xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><ETag>1cb251ec0d568de6a929b520c4aed8d1</ETag><ObjectSize>4</ObjectSize></GetObjectAttributesResponse>"},
		{"alice", "/attr/k?attributes&versionId=null", asks("ObjectSize"), 200, "<ObjectSize>4</ObjectSize>"},
		{"alice", "/attr/parts?attributes", asks("ObjectParts"), 200, "<ObjectParts><IsTruncated>false</IsTruncated><MaxParts>1000</MaxParts><NextPartNumberMarker>9</NextPartNumberMarker><PartNumberMarker>0</PartNumberMarker><Part><ChecksumCRC32>"},
		{"alice", "/attr/parts?attributes", asks("ObjectParts", "X-Amz-Max-Parts", "1"), 200, "<IsTruncated>true</IsTruncated><MaxParts>1</MaxParts><NextPartNumberMarker>2</NextPartNumberMarker><PartNumberMarker>0</PartNumberMarker><Part>"},
		{"alice", "/attr/parts?attributes", asks("ObjectParts", "X-Amz-Part-Number-Marker", "2"), 200, "<NextPartNumberMarker>9</NextPartNumberMarker><PartNumberMarker>2</PartNumberMarker><Part>"},
		{"alice", "/attr/parts?attributes", asks("ObjectParts", "X-Amz-Part-Number-Marker", "5"), 200, "<PartNumber>9</PartNumber><Size>5242880</Size></Part><PartsCount>3</PartsCount></ObjectParts>"},
		{"alice", "/attr/parts?attributes", asks("Checksum"), 200, "<ChecksumType>COMPOSITE</ChecksumType>"},
		{"alice", "/attr/k?attributes", nil, 400, "<Code>InvalidRequest</Code><Message>The x-amz-object-attributes header specifying the attributes to be retrieved is either missing or empty</Message>"},
		{"alice", "/attr/k?attributes", asks("ETag,Colour"), 400, "<Code>InvalidArgument</Code><Message>Invalid attribute name specified.</Message><ArgumentName>x-amz-object-attributes</ArgumentName><ArgumentValue>Colour</ArgumentValue>"},
		{"alice", "/attr/parts?attributes", asks("ObjectParts", "X-Amz-Max-Parts", "x"), 400, "<ArgumentName>x-amz-max-parts</ArgumentName>"},
		{"alice", "/attr/parts?attributes", asks("ObjectParts", "X-Amz-Part-Number-Marker", "-1"), 400, "<ArgumentName>x-amz-part-number-marker</ArgumentName>"},
		{"alice", "/attr/none?attributes", asks("ETag"), 404, "NoSuchKey"},
		{"alice", "/attr/k?attributes&versionId=other", asks("ETag"), 404, "NoSuchVersion"},
		{"bob", "/attr/k?attributes", asks("ETag"), 403, "AccessDenied"},
		{"", "/attr/k?attributes", asks("ETag"), 403, "AccessDenied"},
	} {
		res, _ := d.wantRaw(c.user, "GET", c.target, nil, c.header, c.status, c.says)
		if c.status == 200 && res.Header.Get("Last-Modified") == "" {
			t.Errorf("%s: %v", c.target, res.Header)
		}
	}
}
