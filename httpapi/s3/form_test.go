package s3

import (
	"bytes"
	"crypto/tls"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"
)

// anyCertificate reaches the door over HTTPS, too.
var anyCertificate = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}

// The headers of a form's fields count, too: nobody signed them yet.
func TestFormHeadersAreBounded(t *testing.T) {
	body := "--b\r\nContent-Disposition: form-data; name=\"key\"\r\nX-A: " + strings.Repeat("a", 9<<20) +
		"\r\n\r\nk\r\n--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\ntext\r\n--b--\r\n"
	src := strings.NewReader(body)
	head := &formHead{r: src, left: maxFormHeadBytes}
	if _, _, err := readForm(multipart.NewReader(head, "b")); err == nil || head.left >= 0 {
		t.Errorf("%v, %d left", err, head.left)
	}
	if read := len(body) - src.Len(); read > 2*maxFormHeadBytes {
		t.Errorf("%d bytes were read", read)
	}
	if _, err := head.Read(make([]byte, 1)); err != io.ErrUnexpectedEOF {
		t.Errorf("read on: %v", err)
	}
}

// signedFormV2 is a form that alice signed.
func signedFormV2(policy string, fields ...[2]string) [][2]string {
	encoded := encode64([]byte(policy))
	return append(fields, [2]string{"AWSAccessKeyId", "KEYalice"}, [2]string{"policy", encoded}, [2]string{"signature", macOfV2("alice", encoded)})
}

// What S3 says of policies, one answer a line. Names of fields are compared in
// any case, those of the document exactly.
func TestFormPolicies(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "post")
	future := time.Now().Add(time.Minute).UTC().Format("2006-01-02T15:04:05.000Z")
	with := func(conditions string) string {
		return `{"expiration": "` + future + `", "conditions": [{"bucket": "post"}, ["starts-with", "$key", "k"]` + conditions + `]}`
	}
	field := func(name, value string) [2]string { return [2]string{name, value} }
	for _, c := range []struct {
		policy string
		fields [][2]string
		status int
		says   string
	}{
		{with(""), nil, 204, ""},
		{strings.Replace(with(""), "conditions", "CONDITIONS", 1), nil, 400, `<Code>InvalidPolicyDocument</Code><Message>Invalid Policy: Unexpected: &quot;CONDITIONS&quot;</Message>`},
		{strings.Replace(with(""), "expiration", "EXPIRATION", 1), nil, 400, "Invalid Policy: Unexpected: &quot;EXPIRATION&quot;"},
		{`{"conditions": []}`, nil, 400, "Invalid Policy: Policy missing expiration."},
		{`{"expiration": "` + future + `"}`, nil, 400, "Invalid Policy: Policy missing conditions."},
		{`{"expiration": true, "conditions": []}`, nil, 400, "Invalid Policy: Invalid JSON."},
		{`{"expiration": "soon", "conditions": []}`, nil, 400, "Invalid Policy: Invalid 'expiration' value: 'soon'"},
		{`{"expiration": "2020-01-01T00:00:00Z", "conditions": [{"bucket": "post"}]}`, nil, 403, "<Code>AccessDenied</Code><Message>Invalid according to Policy: Policy expired.</Message>"},
		{`{"expiration": "` + future + `", "conditions": true}`, nil, 400, "Invalid Policy: Invalid 'conditions' value: must be a List."},
		{`{"expiration": "` + future + `", "conditions": []}`, nil, 403, "Invalid according to Policy: Extra input fields: bucket"},
		{"no JSON", nil, 400, "Invalid Policy: Invalid JSON."},
		{" ", nil, 400, "Invalid Policy: Expecting '{' but found End-of-Input"},
		{with(", true"), nil, 400, "Invalid Policy: Invalid condition test: must be a List or Object."},
		{with(", {}"), nil, 400, "Invalid Policy: Invalid Simple-Condition: Simple-Conditions must have exactly one property specified."},
		{with(`, {"a": "b", "c": "d"}`), nil, 400, "Simple-Conditions must have exactly one property specified."},
		{with(`, {"a": true}`), nil, 400, "Invalid Policy: Invalid Simple-Condition: value must be a string."},
		{with(", []"), nil, 400, "Invalid Policy: Invalid Condition: missing operation identifier."},
		{with(`, ["like", "$key", "k"]`), nil, 400, "Invalid Policy: Invalid Condition: unknown operation 'like'."},
		{with(`, ["eq", "$key"]`), nil, 400, "Invalid Policy: Invalid eq: wrong number of arguments."},
		{with(`, ["eq", "$key", true]`), nil, 400, "Invalid Policy: Invalid JSON."},
		{with(`, ["content-length-range", 0]`), nil, 400, "Invalid Policy: Invalid content-length-range: wrong number of arguments."},
		{with(`, ["content-length-range", -1, 0]`), nil, 400, "InvalidPolicyDocument"},
		{with(`, ["content-length-range", 9, 8]`), nil, 400, "InvalidPolicyDocument"},
		{with(`, ["content-length-range", "a", "14"]`), nil, 400, "Invalid Policy: Invalid JSON."},
		{with(`, ["content-length-range", 0, 3]`), nil, 400, "<Code>EntityTooLarge</Code><Message>Your proposed upload exceeds the maximum allowed object size.</Message><ProposedSize>4</ProposedSize><MaxSizeAllowed>3</MaxSizeAllowed>"},
		{with(`, ["content-length-range", 0, 0]`), nil, 400, "<ProposedSize>4</ProposedSize><MaxSizeAllowed>0</MaxSizeAllowed>"},
		{with(`, ["content-length-range", 5, 1000]`), nil, 400, "<Code>EntityTooSmall</Code><Message>Your proposed upload is smaller than the minimum allowed size</Message><ProposedSize>4</ProposedSize><MinSizeAllowed>5</MinSizeAllowed>"},
		{with(`, ["content-length-range", "4", "4"]`), nil, 204, ""},
		{with(`, ["content-length-range", 0, 9], ["content-length-range", 0, 3]`), nil, 400, "EntityTooLarge"},
		{with(`, ["eq", "$key", "other"]`), nil, 403, `Invalid according to Policy: Policy Condition failed: [&quot;eq&quot;, &quot;$key&quot;, &quot;other&quot;]`},
		{with(`, ["eq","key","k"]`), nil, 403, `Policy Condition failed: [&quot;eq&quot;,&quot;key&quot;,&quot;k&quot;]`},
		{with(`, {"bucket": "other"}`), nil, 403, `Policy Condition failed: [&quot;eq&quot;, &quot;$bucket&quot;, &quot;other&quot;]`},
		{with(`, ["starts-with", "$x-amz-meta-a", "b"]`), nil, 403, "Policy Condition failed"},
		{with(`, ["StArTs-WiTh", "$X-Amz-Meta-A", "b"]`), [][2]string{field("x-aMZ-meta-a", "bc")}, 204, ""},
		{with(`, ["starts-with", "$Content-Type", "text/"]`), [][2]string{field("Content-Type", "text/plain, text/html")}, 204, ""},
		{with(`, ["starts-with", "$Content-Type", "text/"]`), [][2]string{field("Content-Type", "text/plain, image/png")}, 403, "Policy Condition failed"},
		{with(`, ["starts-with", "$x-amz-meta-a", "t"]`), [][2]string{field("x-amz-meta-a", "t,x")}, 204, ""},
		{with(`, ["eq", "$x-amz-meta-a", "\$b\v"]`), [][2]string{field("x-amz-meta-a", "$b\v")}, 204, ""},
		{with(""), [][2]string{field("x-ignore-me", "1")}, 204, ""},
		{with(""), [][2]string{field("x-amz-meta-a", "1")}, 403, "Invalid according to Policy: Extra input fields: x-amz-meta-a"},
		{with(`, {"success_action_status": "404"}`), [][2]string{field("success_action_status", "404")}, 204, ""},
		{with(`, {"success_action_status": "200"}`), [][2]string{field("success_action_status", "200")}, 200, ""},
		{with(`, {"x-amz-checksum-crc32": "O4unxw=="}`), [][2]string{field("x-amz-checksum-crc32", "O4unxw==")}, 204, ""},
		{with(`, {"x-amz-checksum-crc32": "AAAAAA=="}`), [][2]string{field("x-amz-checksum-crc32", "AAAAAA==")}, 400, "BadDigest"},
		{with(`, {"tagging": "x"}`), [][2]string{field("tagging", "x")}, 400, "MalformedXML"},
	} {
		kind, body := form(signedFormV2(c.policy, append(c.fields, field("kEy", "k"))...), "text")
		res, _ := d.wantRaw("", "POST", "/post", body, map[string]string{"Content-Type": kind}, c.status, c.says)
		if c.status == 204 && (res.Header.Get("Etag") == "" || res.Header.Get("Location") != d.url+"/post/k" || len(res.Header.Values("X-Amz-Checksum-Crc64nvme"))+len(res.Header.Values("X-Amz-Checksum-Crc32")) != 1) {
			t.Errorf("%s: %v", c.policy, res.Header)
		}
	}
	kind, body := form([][2]string{{"x-amz-meta-a", "b"}}, "x")
	d.wantRaw("", "POST", "/post", body, map[string]string{"Content-Type": kind}, 400, "<Code>InvalidArgument</Code><Message>Bucket POST must contain a field named 'key'.  If it is specified, please check the order of the fields.</Message><ArgumentName>key</ArgumentName><ArgumentValue></ArgumentValue>")
	kind, body = form([][2]string{{"key", ""}}, "x")
	d.wantRaw("", "POST", "/post", body, map[string]string{"Content-Type": kind}, 400, "<Code>UserKeyMustBeSpecified</Code><Message>User key must have a length greater than 0.</Message>")
	d.wantRaw("", "POST", "/post", []byte("x"), map[string]string{"Content-Type": "application/json"}, 412, "<Condition>Bucket POST must be of the enclosure-type multipart/form-data</Condition>")
	d.wantRaw("", "POST", "/post", []byte("x"), map[string]string{"Content-Type": "multipart/form-data"}, 400, "<Code>MalformedPOSTRequest</Code>")
}

// Where a form's sender goes, and what the answer says of the object.
func TestFormAnswers(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "post")
	future := time.Now().Add(time.Minute).UTC().Format("2006-01-02T15:04:05Z")
	policy := `{"expiration": "` + future + `", "conditions": [{"bucket": "post"}, ["starts-with", "$key", ""], ["starts-with", "$redirect", ""],
		["starts-with", "$success_action_redirect", ""], ["starts-with", "$success_action_status", ""], ["starts-with", "$x-amz-meta-name", ""]]}`
	send := func(url string, fields ...[2]string) (*http.Response, string) {
		kind, body := form(signedFormV2(policy, fields...), "text")
		r, err := http.NewRequest("POST", url+"/post", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", kind)
		res, err := anyCertificate.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res, string(text)
	}
	const etag = "%221cb251ec0d568de6a929b520c4aed8d1%22"
	for _, c := range []struct{ field, to, want string }{
		{"success_action_redirect", "http://x.test/done", "http://x.test/done?bucket=post&key=a%2Fb+c&etag=" + etag},
		{"redirect", "https://x.test/?z=1&a=2", "https://x.test/?z=1&a=2&bucket=post&key=a%2Fb+c&etag=" + etag},
		{"success_action_redirect", "javascript:alert(1)", ""},
		{"success_action_redirect", "://", ""},
	} {
		res, _ := send(d.url, [2]string{"key", "a/b c"}, [2]string{c.field, c.to})
		status, want := 303, c.want
		if want == "" {
			status, want = 204, d.url+"/post/a%2Fb%20c"
		}
		if got := res.Header.Get("Location"); res.StatusCode != status || got != want {
			t.Errorf("%s %s: %d %s, want %s", c.field, c.to, res.StatusCode, got, want)
		}
	}
	res, text := send(d.tls, [2]string{"key", "a/${filename}"}, [2]string{"success_action_status", "201"}, [2]string{"x-amz-meta-name", "${filename}"})
	if want := d.tls + "/post/a%2Fphoto.jpg"; res.StatusCode != 201 || res.Header.Get("Location") != want ||
		!strings.Contains(text, "<PostResponse><Location>"+want+"</Location><Bucket>post</Bucket><Key>a/photo.jpg</Key><ETag>&quot;1cb251ec0d568de6a929b520c4aed8d1&quot;</ETag></PostResponse>") {
		t.Errorf("%d %v %s", res.StatusCode, res.Header, text)
	}
	if res, _ := d.raw("alice", "HEAD", "/post/a/photo.jpg", nil, nil); res.Header.Get("X-Amz-Meta-Name") != "photo.jpg" {
		t.Errorf("%v", res.Header)
	}
}

func TestFileNames(t *testing.T) {
	for sent, want := range map[string]string{"f": "f", `C:\pictures\cat.jpg`: "cat.jpg", "a/b": "b", "": ""} {
		fields := map[string]string{"key": "k/${filename}", "policy": "${filename}"}
		part := &multipart.Part{Header: map[string][]string{"Content-Disposition": {`form-data; name="file"; filename="` + sent + `"`}}}
		expandFileName(fields, part)
		if fields["key"] != "k/"+want || fields["policy"] != "${filename}" {
			t.Errorf("%q: %q", sent, fields)
		}
	}
}
