package s3

import (
	"encoding/xml"
	"strings"
	"testing"
	"time"
)

// startUpload begins an upload of ups/k, and returns where its requests go.
func (d *door) startUpload(header map[string]string) string {
	d.t.Helper()
	_, body := d.wantRaw("alice", "POST", "/ups/k?uploads", nil, header, 200, "UploadId")
	var up struct {
		UploadID string `xml:"UploadId"`
	}
	if err := xml.Unmarshal([]byte(body), &up); err != nil {
		d.t.Fatal(err, body)
	}
	return "/ups/k?uploadId=" + up.UploadID
}

// TestWrongChecksums sends a checksum of another body, of each algorithm, at each place
// that takes one. It is refused in S3's words, and what was there stays.
func TestWrongChecksums(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "ups")
	d.wantRaw("alice", "PUT", "/ups/source", []byte("body"), nil, 200, "")
	d.wantRaw("alice", "PUT", "/ups/k", []byte("before"), nil, 200, "")
	for i := range algorithms {
		a := &algorithms[i]
		t.Run(string(a.name), func(t *testing.T) {
			w := &wrongSum{door: d, a: a, right: sumText(t, string(a.name), "body"), wrong: sumText(t, string(a.name), "other")}
			w.bodies()
			w.documents()
			w.forms()
			w.copies()
			w.complete()
			d.wantRaw("alice", "GET", "/ups/k", nil, nil, 200, "before")
		})
	}
	if res, body := d.wantRaw("alice", "GET", "/ups?uploads", nil, nil, 200, "<ListMultipartUploadsResult"); strings.Contains(body, "<Upload>") {
		t.Errorf("%s %s", res.Status, body)
	}
	if _, body := d.wantRaw("alice", "GET", "/ups", nil, nil, 200, ""); strings.Count(body, "<Contents>") != 2 {
		t.Errorf("keys that nobody wrote: %s", body)
	}
	d.wantClean(2)
}

// wrongSum is one algorithm: its sum of "body", and the one of something else.
type wrongSum struct {
	*door
	a            *algorithm
	right, wrong string
}

func (w *wrongSum) field() string { return strings.ToLower(w.a.header) }

// mismatch is what S3 answers where a body is not what its checksum is of.
func (w *wrongSum) mismatch() string {
	return "<Code>BadDigest</Code><Message>The " + string(w.a.name) + " you specified did not match the calculated checksum.</Message>"
}

// trailer is a body in chunks, its checksum behind it.
func (w *wrongSum) trailer(sum string) ([]byte, map[string]string) {
	h := trailerHeaders(4)
	h["X-Amz-Trailer"], h["X-Amz-Sdk-Checksum-Algorithm"] = w.field(), string(w.a.name)
	return chunkedBody([]byte("body"), 4, w.field()+":"+sum+"\r\n"), h
}

// documents are the bodies of configurations.
func (w *wrongSum) documents() {
	for target, text := range map[string]string{
		"/ups?policy":    `{"Statement":[{"Effect":"Deny","Principal":"*","Action":"s3:GetObject","Resource":"arn:aws:s3:::ups/none"}]}`,
		"/ups?cors":      "<CORSConfiguration><CORSRule><AllowedMethod>GET</AllowedMethod><AllowedOrigin>*</AllowedOrigin></CORSRule></CORSConfiguration>",
		"/ups?tagging":   "<Tagging><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tagging>",
		"/ups/k?tagging": "<Tagging><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tagging>",
	} {
		w.wantRaw("alice", "PUT", target, []byte(text), map[string]string{w.a.header: w.wrong}, 400, w.mismatch())
		if res, body := w.raw("alice", "GET", target, nil, nil); res.StatusCode != 404 && !strings.Contains(body, "<TagSet/>") && !strings.Contains(body, "<TagSet></TagSet>") {
			w.t.Errorf("%s: %s %s", target, res.Status, body)
		}
	}
	w.wantRaw("alice", "POST", "/ups?delete", []byte("<Delete><Object><Key>k</Key></Object></Delete>"), map[string]string{w.a.header: w.wrong}, 400, w.mismatch())
}

// bodies are those of PutObject, of an append, and of UploadPart; by header and trailer.
func (w *wrongSum) bodies() {
	at := w.startUpload(map[string]string{"X-Amz-Checksum-Algorithm": string(w.a.name)})
	defer w.wantRaw("alice", "DELETE", at, nil, nil, 204, "")
	chunked, trailed := w.trailer(w.wrong)
	for _, target := range []string{"/ups/k", "/ups/new", at + "&partNumber=1"} {
		w.wantRaw("alice", "PUT", target, []byte("body"), map[string]string{w.a.header: w.wrong}, 400, w.mismatch())
		w.wantRaw("alice", "PUT", target, chunked, trailed, 400, w.mismatch())
		for _, text := range []string{"", "AAA=", "!", w.right + w.right} {
			w.wantRaw("alice", "PUT", target, []byte("body"), map[string]string{w.a.header: text}, 400, "Value for "+w.field()+" header is invalid.")
			chunked, trailed := w.trailer(text)
			w.wantRaw("alice", "PUT", target, chunked, trailed, 400, "<Code>")
		}
	}
	w.wantRaw("alice", "PUT", "/ups/k", []byte("body"), map[string]string{w.a.header: w.wrong, "X-Amz-Write-Offset-Bytes": "6"}, 400, w.mismatch())
	if _, body := w.wantRaw("alice", "GET", at, nil, nil, 200, "<ListPartsResult"); strings.Contains(body, "<Part>") {
		w.t.Errorf("a part is there: %s", body)
	}
}

func (w *wrongSum) forms() {
	expires := time.Now().Add(time.Minute).UTC().Format("2006-01-02T15:04:05Z")
	for text, says := range map[string]string{w.wrong: w.mismatch(), "AAA=": "Value for " + w.field() + " header is invalid."} {
		policy := `{"expiration": "` + expires + `", "conditions": [{"bucket": "ups"}, {"key": "k"}, {"` + w.field() + `": "` + text + `"}]}`
		kind, body := form(signedFormV2(policy, [2]string{"key", "k"}, [2]string{w.field(), text}), "body")
		w.wantRaw("", "POST", "/ups", body, map[string]string{"Content-Type": kind}, 400, says)
	}
}

// copies have no body: what they state is of nothing, or refused, even where it is of the
// copied bytes.
func (w *wrongSum) copies() {
	from := map[string]string{"X-Amz-Copy-Source": "/ups/source", w.a.header: w.wrong}
	w.wantRaw("alice", "PUT", "/ups/copy", nil, from, 400, w.mismatch())
	at := w.startUpload(map[string]string{"X-Amz-Checksum-Algorithm": string(w.a.name)})
	defer w.wantRaw("alice", "DELETE", at, nil, nil, 204, "")
	w.wantRaw("alice", "PUT", at+"&partNumber=1", nil, from, 400, w.mismatch())
	w.wantRaw("alice", "PUT", at+"&partNumber=1", nil, map[string]string{"X-Amz-Copy-Source": "/ups/source", w.a.header: "AAA="}, 400, "Value for "+w.field()+" header is invalid.")
	if _, body := w.wantRaw("alice", "GET", at, nil, nil, 200, "<ListPartsResult"); strings.Contains(body, "<Part>") {
		w.t.Errorf("a part is there: %s", body)
	}
}

// complete says something wrong of the parts, of bodies and copied ones, and of the
// whole.
func (w *wrongSum) complete() {
	at := w.startUpload(map[string]string{"X-Amz-Checksum-Algorithm": string(w.a.name)})
	defer w.wantRaw("alice", "DELETE", at, nil, nil, 204, "")
	w.wantRaw("alice", "PUT", at+"&partNumber=1", nil, map[string]string{"X-Amz-Copy-Source": "/ups/source"}, 200, "<"+w.a.xml+">"+w.right+"<")
	const etag = "841a2d689ad86bd1611447453c22c6fc" // MD5 of "body"
	list := func(sum string) []byte {
		return []byte("<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>" + etag + "</ETag><" + w.a.xml + ">" + sum + "</" + w.a.xml + "></Part></CompleteMultipartUpload>")
	}
	w.wantRaw("alice", "POST", at, list(w.wrong), nil, 400, "<Code>InvalidPart</Code>")
	w.wantRaw("alice", "POST", at, list("AAA="), nil, 400, "<Code>")
	for _, sum := range []string{w.wrong, w.wrong + "-1"} {
		w.wantRaw("alice", "POST", at, list(w.right), map[string]string{w.a.header: sum}, 400, "<Code>")
	}
	w.wantRaw("alice", "POST", at, list(w.right), map[string]string{w.a.header: "AAA="}, 400, "Value for "+w.field()+" header is invalid.")
	w.wantRaw("alice", "GET", at, nil, nil, 200, "<"+w.a.xml+">"+w.right+"<") // the part waits
}
