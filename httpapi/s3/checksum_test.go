package s3

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// sumText is the base64 of body's checksum.
func sumText(t *testing.T, alg, body string) string {
	t.Helper()
	a, err := findAlgorithm(alg)
	if err != nil {
		t.Fatal(err)
	}
	h := a.make()
	h.Write([]byte(body))
	return encode64(h.Sum(nil))
}

func sumHeader(alg string) string { return http.CanonicalHeaderKey("x-amz-checksum-" + alg) }

// Every algorithm in headers and trailers, right and wrong.
func TestChecksumAlgorithms(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "sums")
	for i := range algorithms {
		a := &algorithms[i]
		alg, right, wrong := string(a.name), sumText(t, string(a.name), "body"), sumText(t, string(a.name), "other")
		d.wantRaw("alice", "PUT", "/sums/k", []byte("body"), map[string]string{a.header: right}, 200, "")
		res, _ := d.raw("alice", "HEAD", "/sums/k", nil, map[string]string{"X-Amz-Checksum-Mode": "ENABLED"})
		if res.Header.Get(a.header) != right || res.Header.Get("X-Amz-Checksum-Type") != "FULL_OBJECT" {
			t.Errorf("%s: %v", alg, res.Header)
		}
		d.wantRaw("alice", "PUT", "/sums/k", []byte("body"), map[string]string{a.header: wrong}, 400, "The "+alg+" you specified did not match the calculated checksum.")
		d.wantRaw("alice", "PUT", "/sums/k", []byte("body"), map[string]string{a.header: "AAA="}, 400, "Value for "+strings.ToLower(a.header)+" header is invalid.")
		for sum, status := range map[string]int{right: 200, wrong: 400} {
			h := trailerHeaders(4)
			h["X-Amz-Trailer"], h["X-Amz-Sdk-Checksum-Algorithm"] = strings.ToLower(a.header), alg
			body := chunkedBody([]byte("body"), 4, strings.ToLower(a.header)+":"+sum+"\r\n")
			d.wantRaw("alice", "PUT", "/sums/k", body, h, status, "")
		}
		d.wantRaw("alice", "PUT", "/sums/copy", nil, map[string]string{"X-Amz-Copy-Source": "/sums/k", "X-Amz-Checksum-Algorithm": alg}, 200, "<"+a.xml+">"+right+"</"+a.xml+">")
	}
	d.wantRaw("alice", "PUT", "/sums/k", []byte("body"), map[string]string{"X-Amz-Checksum-Crc16": "AAA="}, 400, "The algorithm type you specified in x-amz-checksum- header is invalid.")
	d.wantRaw("alice", "PUT", "/sums/k", []byte("body"), map[string]string{"X-Amz-Sdk-Checksum-Algorithm": "CRC16"}, 400, "Checksum algorithm provided is unsupported.")
	d.wantRaw("alice", "POST", "/sums/k?uploads", nil, map[string]string{"X-Amz-Checksum-Algorithm": "CRC16"}, 400, "Checksum algorithm provided is unsupported.")
}

// A copy has the checksum that was asked for, and none beside it.
func TestCopyChecksum(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "sums")
	d.wantRaw("alice", "PUT", "/sums/k", []byte("body"), map[string]string{sumHeader("sha1"): sumText(t, "SHA1", "body")}, 200, "")
	for _, target := range []string{"copy", "k"} {
		h := map[string]string{"X-Amz-Copy-Source": "/sums/k", "X-Amz-Checksum-Algorithm": "SHA256", "X-Amz-Metadata-Directive": "REPLACE"}
		d.wantRaw("alice", "PUT", "/sums/"+target, nil, h, 200, "<ChecksumSHA256>"+sumText(t, "SHA256", "body"))
		res, _ := d.raw("alice", "HEAD", "/sums/"+target, nil, map[string]string{"X-Amz-Checksum-Mode": "ENABLED"})
		if res.Header.Get(sumHeader("sha256")) == "" || res.Header.Get(sumHeader("sha1")) != "" {
			t.Errorf("%s: %v", target, res.Header)
		}
	}
}

// What an upload promised of checksums holds for its parts and its end.
func TestUploadChecksums(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "ups")
	sum := func(alg string) map[string]string { return map[string]string{sumHeader(alg): sumText(t, alg, "part")} }
	with := func(h map[string]string, more ...string) map[string]string {
		out := map[string]string{}
		for k, v := range h {
			out[k] = v
		}
		for i := 0; i < len(more); i += 2 {
			out[more[i]] = more[i+1]
		}
		return out
	}
	element := func(alg string) string {
		return "<Checksum" + alg + ">" + sumText(t, alg, "part") + "</Checksum" + alg + ">"
	}
	composite := func(alg string) string {
		a, _ := findAlgorithm(alg)
		one, all := a.make(), a.make()
		one.Write([]byte("part"))
		all.Write(one.Sum(nil))
		return encode64(all.Sum(nil))
	}
	for _, c := range []struct {
		name         string
		alg, kind    string
		part         map[string]string
		partSays     string            // error of the part
		element      string            // of the part in the list
		header       map[string]string // of the end
		status       int
		completeSays string
	}{
		{"another algorithm", "SHA1", "", sum("CRC32C"), "expected checksum Type: sha1, actual checksum Type: crc32c", "", nil, 0, ""},
		{"none where the parts' make the object's", "SHA256", "", nil, "expected checksum Type: sha256, actual checksum Type: null", "", nil, 0, ""},
		{"another than a full one", "CRC64NVME", "", sum("CRC32"), "expected checksum Type: crc64nvme, actual checksum Type: crc32", "", nil, 0, ""},
		{"a full one is computed", "CRC32", "FULL_OBJECT", nil, "", "", sum("CRC32"), 200, "<ChecksumType>FULL_OBJECT"},
		{"a full CRC64NVME is computed", "CRC64NVME", "FULL_OBJECT", nil, "", "", sum("CRC64NVME"), 200, "<ChecksumType>FULL_OBJECT"},
		{"a composite wants each part's", "SHA256", "", sum("SHA256"), "", "", nil, 400, "The upload was created using a sha256 checksum. The complete request must include the checksum for each part. It was missing for part 1 in the request."},
		{"a composite", "SHA256", "COMPOSITE", sum("SHA256"), "", element("SHA256"), map[string]string{sumHeader("sha256"): composite("SHA256") + "-1", "X-Amz-Checksum-Type": "COMPOSITE"}, 200, composite("SHA256") + "-1"},
		{"a composite of XXHASH128", "XXHASH128", "", sum("XXHASH128"), "", element("XXHASH128"), nil, 200, composite("XXHASH128") + "-1"},
		{"of other parts", "SHA512", "", sum("SHA512"), "", element("SHA512"), map[string]string{sumHeader("sha512"): composite("SHA512") + "-2"}, 400, "BadDigest"},
		{"composite, full said", "MD5", "", sum("MD5"), "", element("MD5"), map[string]string{"X-Amz-Checksum-Type": "FULL_OBJECT"}, 400, "The upload was created using the COMPOSITE checksum mode. The complete request must use the same checksum mode."},
		{"full, composite said", "CRC32", "FULL_OBJECT", sum("CRC32"), "", "", map[string]string{sumHeader("crc32"): sumText(t, "CRC32", "part") + "-1"}, 400, "BadDigest"},
		{"a part's wrong", "SHA256", "", sum("SHA256"), "", "<ChecksumSHA256>" + sumText(t, "SHA256", "other") + "</ChecksumSHA256>", nil, 400, "InvalidPart"},
		{"not known", "SHA256", "", sum("SHA256"), "", element("SHA256"), map[string]string{"X-Amz-Checksum-Sha3": "AAAA"}, 400, "The algorithm type you specified"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := map[string]string{"X-Amz-Checksum-Algorithm": c.alg}
			if c.kind != "" {
				h["X-Amz-Checksum-Type"] = c.kind
			}
			_, body := d.raw("alice", "POST", "/ups/k?uploads", nil, h)
			var up struct {
				UploadID string `xml:"UploadId"`
			}
			if err := xml.Unmarshal([]byte(body), &up); err != nil {
				t.Fatal(err, body)
			}
			at := "/ups/k?uploadId=" + up.UploadID
			if c.partSays != "" {
				d.wantRaw("alice", "PUT", at+"&partNumber=1", []byte("part"), c.part, 400, c.partSays)
				return
			}
			res, body := d.raw("alice", "PUT", at+"&partNumber=1", []byte("part"), c.part)
			if res.StatusCode != 200 || res.Header.Get(sumHeader(c.alg)) != sumText(t, c.alg, "part") {
				t.Fatalf("%s %v %s", res.Status, res.Header, body)
			}
			list := fmt.Sprintf("<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>%s</ETag>%s</Part></CompleteMultipartUpload>", res.Header.Get("ETag"), c.element)
			d.wantRaw("alice", "POST", at, []byte(strings.Replace(list, "<ETag>"+res.Header.Get("ETag")+"</ETag>", "", 1)), with(c.header), 400, "")
			d.wantRaw("alice", "POST", at, []byte(list), with(c.header), c.status, c.completeSays)
		})
	}
}
