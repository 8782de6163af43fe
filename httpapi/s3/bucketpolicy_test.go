package s3

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"ogw/httpapi/sigv4"
	"ogw/vfs"
	"ogw/vfs/policy"
)

// setPolicy sets a policy of statements, in which BOB and BKT stand for bob and the bucket.
func (d *door) setPolicy(bucket string, statements ...string) {
	d.t.Helper()
	text := `{"Version":"2012-10-17","Statement":[` + strings.Join(statements, ",") + `]}`
	text = strings.NewReplacer("BOB", `{"AWS":"`+d.userID("bob")+`"}`, "BKT", "arn:aws:s3:::"+bucket).Replace(text)
	d.wantRaw("root", "PUT", "/"+bucket+"?policy", []byte(text), nil, 204, "")
}

func TestBucketPolicy(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "pol")
	d.wantRaw("alice", "PUT", "/pol/open/k", []byte("v"), nil, 200, "")
	d.wantRaw("alice", "PUT", "/pol/k", []byte("v"), nil, 200, "")
	d.wantRaw("", "GET", "/pol/open/k", nil, nil, 403, "AccessDenied")
	d.wantRaw("alice", "GET", "/pol?policy", nil, nil, 404, "NoSuchBucketPolicy")
	d.wantRaw("alice", "GET", "/pol?policyStatus", nil, nil, 404, "NoSuchBucketPolicy")
	text := `{"Version":"2012-10-17", "Statement":[{"Effect":"Allow","Principal":"*","Action":"s3:GetObject","Resource":"arn:aws:s3:::pol/open/*"}]}`
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		d.wantRaw("bob", method, "/pol?policy", []byte(text), nil, 403, "AccessDenied")
	}
	d.wantRaw("alice", "PUT", "/pol?policy", []byte(text), nil, 204, "")
	res, _ := d.wantRaw("alice", "GET", "/pol?policy", nil, nil, 200, text)
	if got := res.Header.Get("Content-Type"); got != "application/json" {
		t.Error(got)
	}
	d.wantRaw("alice", "GET", "/pol?policyStatus", nil, nil, 200, "<IsPublic>true</IsPublic>")
	d.wantRaw("", "GET", "/pol/open/k", nil, nil, 200, "v")
	d.wantRaw("", "GET", "/pol/k", nil, nil, 403, "AccessDenied")
	d.wantRaw("", "PUT", "/pol/open/k", []byte("w"), nil, 403, "AccessDenied")
	d.wantRaw("", "GET", "/pol", nil, nil, 403, "AccessDenied")
	for body, message := range map[string]string{
		"{": "Policies must be valid JSON and the first byte must be &#39;{&#39;",
		strings.Replace(text, "s3:GetObject", "s3:Get", 1):                            "Policy has invalid action",
		strings.Replace(text, `"*"`, `{"AWS":"arn:aws:iam::000000000001:user/x"}`, 1): "Invalid principal in policy",
		strings.Replace(text, "open", strings.Repeat("x", policy.MaxBucketBytes), 1):  "Normalized policy document exceeds the maximum allowed size of 20480 bytes.",
		strings.Replace(text, "arn:aws:s3:::pol/", "arn:aws:s3:::other/", 1):          "Policy has invalid resource",
	} {
		_, got := d.raw("alice", "PUT", "/pol?policy", []byte(body), nil)
		if !strings.Contains(strings.ReplaceAll(got, "'", "&#39;"), "<Code>MalformedPolicy</Code><Message>"+message) {
			t.Errorf("%.100s: %s", body, got)
		}
	}
	d.wantRaw("alice", "GET", "/pol?policy", nil, nil, 200, text)
	d.wantRaw("alice", "DELETE", "/pol?policy", nil, nil, 204, "")
	d.wantRaw("alice", "DELETE", "/pol?policy", nil, nil, 204, "")
	d.wantRaw("", "GET", "/pol/open/k", nil, nil, 403, "AccessDenied")
}

// TestPolicyActions: each operation has its action, and nothing else lets it pass.
func TestPolicyActions(t *testing.T) {
	d := openDoor(t, Config{})
	for i, c := range []struct{ action, method, target, body string }{
		{"s3:GetObject", "GET", "/k", ""}, {"s3:GetObject", "HEAD", "/k", ""}, {"s3:PutObject", "PUT", "/new", "v"}, {"s3:DeleteObject", "DELETE", "/k", ""},
		{"s3:GetObjectTagging", "GET", "/k?tagging", ""}, {"s3:DeleteObjectTagging", "DELETE", "/k?tagging", ""},
		{"s3:PutObjectTagging", "PUT", "/k?tagging", "<Tagging><TagSet/></Tagging>"}, {"s3:GetObjectAcl", "GET", "/k?acl", ""},
		{"s3:GetBucketAcl", "GET", "?acl", ""}, {"s3:ListBucket", "GET", "", ""}, {"s3:ListBucket", "GET", "?list-type=2", ""}, {"s3:ListBucket", "HEAD", "", ""},
		{"s3:GetBucketLocation", "GET", "?location", ""}, {"s3:ListBucketVersions", "GET", "?versions", ""}, {"s3:ListBucketMultipartUploads", "GET", "?uploads", ""},
		{"s3:GetBucketCORS", "GET", "?cors", ""}, {"s3:PutBucketCORS", "DELETE", "?cors", ""}, {"s3:GetBucketTagging", "GET", "?tagging", ""}, {"s3:PutBucketTagging", "DELETE", "?tagging", ""},
		{"s3:GetBucketPolicy", "GET", "?policy", ""}, {"s3:DeleteBucketPolicy", "DELETE", "?policy", ""}, {"s3:GetBucketPolicyStatus", "GET", "?policyStatus", ""},
		{"s3:GetBucketPublicAccessBlock", "GET", "?publicAccessBlock", ""}, {"s3:GetBucketVersioning", "GET", "?versioning", ""}, {"s3:GetEncryptionConfiguration", "GET", "?encryption", ""},
		{"s3:GetBucketRequestPayment", "GET", "?requestPayment", ""},
	} {
		bucket := fmt.Sprintf("actions-%d", i)
		d.bucket("alice", bucket)
		d.wantRaw("alice", "PUT", "/"+bucket+"/k", []byte("v"), nil, 200, "")
		others := strings.NewReplacer("BKT", "BKT", c.action, "s3:AbortMultipartUpload").Replace(`{"Effect":"Allow","Principal":BOB,"NotAction":"` + "ACTION" + `","Resource":["BKT","BKT/*"]}`)
		d.setPolicy(bucket, strings.Replace(others, "ACTION", c.action, 1))
		if res, got := d.raw("bob", c.method, "/"+bucket+c.target, []byte(c.body), nil); res.StatusCode != 403 {
			t.Errorf("%s %s by all actions but %s: %d %s", c.method, c.target, c.action, res.StatusCode, got)
		}
		d.setPolicy(bucket, `{"Effect":"Allow","Principal":BOB,"Action":"`+c.action+`","Resource":["BKT","BKT/*"]}`)
		if res, got := d.raw("bob", c.method, "/"+bucket+c.target, []byte(c.body), nil); res.StatusCode == 403 {
			t.Errorf("%s %s by %s: %s", c.method, c.target, c.action, got)
		}
		d.setPolicy(bucket, `{"Effect":"Deny","Principal":"*","Action":"`+c.action+`","Resource":["BKT","BKT/*"]}`)
		res, got := d.raw("alice", c.method, "/"+bucket+c.target, []byte(c.body), nil)
		kept := strings.HasSuffix(c.action, "BucketPolicy")
		if (res.StatusCode == 403) == kept {
			t.Errorf("%s %s, %s denied to the owner: %d %s", c.method, c.target, c.action, res.StatusCode, got)
		}
	}
}

// TestOperationsHaveActions: what policies call an operation is an action of theirs.
func TestOperationsHaveActions(t *testing.T) {
	served := map[string]bool{}
	for _, name := range Operations() {
		served[name] = true
	}
	for name, action := range policyActions {
		if !served[name] {
			t.Errorf("no operation %s", name)
		}
		for _, resource := range []string{"arn:aws:s3:::b", "arn:aws:s3:::b/k"} {
			text, _ := json.Marshal(map[string]any{"Statement": map[string]any{"Effect": "Allow", "Principal": "*", "Action": action, "Resource": resource}})
			if _, err := policy.Parse(text, policy.Options{Bucket: "b"}); err == nil {
				served[action] = true
			}
		}
		if !served[action] {
			t.Errorf("%s: policies do not know %s", name, action)
		}
	}
	for _, r := range Routes() {
		needs := map[string]bool{"acl": true, "": true, "list-type": true, "delete": true, "uploads": true, "uploadId": true, "partNumber": true}
		if _, ok := policyActions[r.Name]; !ok && !needs[r.Query] {
			t.Errorf("%s has the action of another operation", r.Name)
		}
	}
}

// TestPolicyConditions: what S3 documents of a request can be asked for.
func TestPolicyConditions(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "cond")
	d.wantRaw("alice", "PUT", "/cond/k", []byte("v"), map[string]string{"X-Amz-Tagging": "team=red&other=x"}, 200, "")
	type h = map[string]string
	for _, c := range []struct {
		action, condition string
		method, target    string
		body              string
		header, refused   h
		refusedTarget     string
	}{
		{"s3:GetObject", `"IpAddress":{"aws:SourceIp":"127.0.0.0/8"},"NotIpAddress":{"aws:SourceIp":"192.0.2.0/24"}`, "GET", "/k", "", nil, nil, ""},
		{"s3:GetObject", `"Bool":{"aws:SecureTransport":"false"}`, "GET", "/k", "", nil, nil, ""},
		{"s3:GetObject", `"StringLike":{"aws:Referer":"http://example.com/*"}`, "GET", "/k", "", h{"Referer": "http://example.com/x"}, h{"Referer": "http://example.org/x"}, ""},
		{"s3:GetObject", `"StringEquals":{"aws:UserAgent":"one"}`, "GET", "/k", "", h{"User-Agent": "one"}, h{"User-Agent": "two"}, ""},
		{"s3:GetObject", `"StringEquals":{"aws:username":"bob"},"DateGreaterThan":{"aws:CurrentTime":"2020-01-01T00:00:00Z"},"NumericGreaterThan":{"aws:EpochTime":"1000"}`, "GET", "/k", "", nil, nil, ""},
		{"s3:GetObject", `"StringEquals":{"s3:ExistingObjectTag/team":"red","s3:authType":"REST-HEADER","s3:signatureversion":"AWS4-HMAC-SHA256"},"NumericLessThan":{"s3:signatureAge":600000}`, "GET", "/k", "", nil, nil, ""},
		{"s3:ListBucket", `"StringEquals":{"s3:prefix":"a/","s3:delimiter":"/"},"NumericLessThanEquals":{"s3:max-keys":"10"}`, "GET", "?prefix=a/&delimiter=/&max-keys=10", "", nil, nil, "?prefix=a/&delimiter=/&max-keys=11"},
		{"s3:ListBucket", `"StringEquals":{"s3:prefix":""}`, "GET", "?prefix=", "", nil, nil, "?prefix=b"},
		{"s3:ListBucket", `"Null":{"s3:prefix":"true"}`, "GET", "", "", nil, nil, "?prefix=b"},
		{"s3:ListBucket", `"StringEqualsIfExists":{"s3:prefix":"a/"}`, "GET", "", "", nil, nil, "?prefix=b"},
		{"s3:ListBucket", `"StringEquals":{"aws:username":"bob"},"Null":{"aws:Referer":"true"}`, "GET", "", "", nil, h{"Referer": "bob"}, ""},
		{"s3:PutObject*", `"StringEquals":{"s3:x-amz-acl":"public-read"}`, "PUT", "/k", "v", h{"X-Amz-Acl": "public-read"}, h{"X-Amz-Acl": "private"}, ""},
		{"s3:PutObject", `"StringEquals":{"s3:x-amz-storage-class":"STANDARD_IA"}`, "PUT", "/k", "v", h{"X-Amz-Storage-Class": "STANDARD_IA"}, nil, ""},
		{"s3:PutObject*", `"StringEquals":{"s3:RequestObjectTag/Team":"red"},"ForAllValues:StringEquals":{"s3:RequestObjectTagKeys":["Team"]}`, "PUT", "/k", "v", h{"X-Amz-Tagging": "Team=red"}, h{"X-Amz-Tagging": "Team=red&more=1"}, ""},
		{"s3:*Object*", `"StringLikeIfExists":{"s3:x-amz-copy-source":"cond/k*"}`, "PUT", "/copy", "", h{"X-Amz-Copy-Source": "/cond/%6b"}, h{"X-Amz-Copy-Source": "/cond/other"}, ""},
		{"s3:PutObjectTagging", `"StringEquals":{"s3:RequestObjectTag/a":"b"}`, "PUT", "/k?tagging", "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>", nil, nil, ""},
	} {
		d.setPolicy("cond", `{"Effect":"Allow","Principal":BOB,"Action":"`+c.action+`","Resource":["BKT","BKT/*"],"Condition":{`+c.condition+`}}`)
		d.wantRaw("bob", c.method, "/cond"+c.target, []byte(c.body), c.header, 200, "")
		if c.refused != nil {
			d.wantRaw("bob", c.method, "/cond"+c.target, []byte(c.body), c.refused, 403, "AccessDenied")
		}
		if c.refusedTarget != "" {
			d.wantRaw("bob", c.method, "/cond"+c.refusedTarget, []byte(c.body), c.header, 403, "AccessDenied")
		}
	}
	d.wantRaw("bob", "PUT", "/cond/k?tagging", []byte("<Tagging><TagSet><Tag><Key>a</Key><Value>c</Value></Tag></TagSet></Tagging>"), nil, 403, "AccessDenied")
}

// TestPolicyOfUploads: who may only put objects completes an upload, whatever the request states of it.
func TestPolicyOfUploads(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "drop")
	d.setPolicy("drop", `{"Effect":"Allow","Principal":BOB,"Action":"s3:PutObject","Resource":"BKT/*"}`,
		`{"Effect":"Deny","Principal":BOB,"Action":["s3:ListMultipartUploadParts","s3:GetObject"],"Resource":"BKT/*"}`)
	_, started := d.wantRaw("bob", "POST", "/drop/k?uploads", nil, nil, 200, "<UploadId>")
	_, id, _ := strings.Cut(started, "<UploadId>")
	id, _, _ = strings.Cut(id, "<")
	target := "/drop/k?uploadId=" + escape(id)
	d.wantRaw("bob", "GET", target, nil, nil, 403, "AccessDenied")
	res, _ := d.wantRaw("bob", "PUT", target+"&partNumber=1", []byte("small"), nil, 200, "")
	complete := []byte("<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>" + res.Header.Get("ETag") + "</ETag></Part></CompleteMultipartUpload>")
	stated := func(size, kind string) map[string]string {
		return map[string]string{"X-Amz-Mp-Object-Size": size, "X-Amz-Checksum-Type": kind}
	}
	d.wantRaw("bob", "POST", target, complete, stated("5", "COMPOSITE"), 400, "FULL_OBJECT checksum mode")
	d.wantRaw("bob", "POST", target, complete, stated("6", "FULL_OBJECT"), 400, "x-amz-mp-object-size")
	d.wantRaw("bob", "POST", target, complete, stated("x", "FULL_OBJECT"), 400, "x-amz-mp-object-size")
	d.wantRaw("bob", "POST", target, complete, stated("5", "x"), 400, "x-amz-checksum-type")
	_, answer := d.wantRaw("bob", "POST", target, complete, stated("5", "full_object"), 200, "CompleteMultipartUploadResult")
	// Whose answer is lost asks again, who may not read the object, too; it may be gone by then.
	d.wantRaw("bob", "GET", "/drop/k", nil, nil, 403, "AccessDenied")
	d.wantRaw("bob", "POST", target, complete, stated("5", "full_object"), 200, answer)
	d.wantRaw("alice", "DELETE", "/drop/k", nil, nil, 204, "")
	d.wantRaw("bob", "POST", target, complete, stated("5", "full_object"), 200, answer)
}

// TestPolicyConditionsOfOthers: who puts into a request what a condition asks for, where the request
// does not go by it, gains nothing and escapes nothing.
func TestPolicyConditionsOfOthers(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "cond")
	type h = map[string]string
	for _, k := range []string{"a/k", "b/k", "secret/k"} {
		d.wantRaw("alice", "PUT", "/cond/"+k, []byte("v"), h{"X-Amz-Tagging": "class=secret"}, 200, "")
	}
	all := `{"Effect":"Allow","Principal":BOB,"Action":"s3:*","Resource":["BKT","BKT/*"]`
	d.setPolicy("cond", all+`,"Condition":{"StringLike":{"s3:prefix":"a/*"}}}`)
	d.wantRaw("bob", "GET", "/cond?list-type=2&prefix=a/", nil, nil, 200, "<Key>a/k</Key>")
	for _, x := range [][2]string{{"GET", "/cond/b/k?prefix=a/x"}, {"PUT", "/cond/b/new?prefix=a/x"}, {"DELETE", "/cond/b/k?prefix=a/x"},
		{"GET", "/cond?policy&prefix=a/x"}, {"DELETE", "/cond?prefix=a/x"}, {"GET", "/cond/b/none?prefix=a/x"}} {
		d.wantRaw("bob", x[0], x[1], nil, nil, 403, "AccessDenied")
	}
	for _, c := range []struct {
		deny           string
		method, target string
		header         h
		status         int
	}{
		{`"s3:PutObject","Condition":{"StringLike":{"s3:x-amz-copy-source":"cond/secret/*"}}`, "PUT", "/cond/copy", h{"X-Amz-Copy-Source": "%2Fcond/secret/k"}, 403},
		{`"s3:PutObject","Condition":{"StringLike":{"s3:x-amz-copy-source":"cond/secret/*"}}`, "PUT", "/cond/copy", h{"X-Amz-Copy-Source": "cond/secret/k?%zz"}, 400},
		{`"s3:PutObject","Condition":{"StringEquals":{"s3:x-amz-copy-source":"cond/secret/k"}}`, "PUT", "/cond/copy", h{"X-Amz-Copy-Source": "cond/secret/k?versionId=null"}, 403},
		{`"s3:PutObject","Condition":{"StringNotEquals":{"s3:RequestObjectTag/class":"public"}}`, "PUT", "/cond/copy", h{"X-Amz-Copy-Source": "cond/secret/k", "X-Amz-Tagging": "class=public"}, 403},
		{`"s3:GetObjectTagging"`, "PUT", "/cond/copy", h{"X-Amz-Copy-Source": "cond/b/k"}, 403},
		{`"s3:GetObjectTagging"`, "PUT", "/cond/copy", h{"X-Amz-Copy-Source": "cond/b/k", "X-Amz-Metadata-Directive": "REPLACE"}, 403},
		{`"s3:GetObjectTagging"`, "PUT", "/cond/untagged", h{"X-Amz-Copy-Source": "cond/b/k", "X-Amz-Tagging-Directive": "REPLACE"}, 200},
		{`"s3:PutObject*","Condition":{"StringLike":{"s3:x-amz-grant-read":"*AllUsers*"}}`, "PUT", "/cond/new", h{"X-Amz-Grant-Read": `id="x", uri="http://acs.amazonaws.com/groups/global/AllUsers"`}, 403},
		{`"s3:ListBucket","Condition":{"NumericGreaterThan":{"s3:max-keys":"10"}}`, "GET", "/cond?max-keys=", nil, 403},
		{`"s3:ListBucket","Condition":{"NumericGreaterThan":{"s3:max-keys":"10"}}`, "GET", "/cond?max-keys=10", nil, 200},
		{`"s3:ListBucketMultipartUploads","Condition":{"NumericGreaterThan":{"s3:max-keys":"10"}}`, "GET", "/cond?uploads&max-keys=10", nil, 403},
		{`"s3:ListBucketMultipartUploads","Condition":{"NumericGreaterThan":{"s3:max-keys":"10"}}`, "GET", "/cond?uploads&max-keys=1&max-uploads=11", nil, 403},
		{`"s3:ListBucketMultipartUploads","Condition":{"NumericGreaterThan":{"s3:max-keys":"10"}}`, "GET", "/cond?uploads&max-uploads=10", nil, 200},
	} {
		d.setPolicy("cond", all+`}`, `{"Effect":"Deny","Principal":BOB,"Resource":["BKT","BKT/*"],"Action":`+c.deny+`}`)
		if res, got := d.raw("bob", c.method, c.target, nil, c.header); res.StatusCode != c.status {
			t.Errorf("%s %s %v, denied %s: %d %.200s", c.method, c.target, c.header, c.deny, res.StatusCode, got)
		}
	}
	d.wantRaw("bob", "GET", "/cond/copy", nil, nil, 404, "NoSuchKey") // none was made

	header := http.Header{"X-Amz-Grant-Read": {"id=bob", "uri=all"}}
	q := conditionKeys{r: &http.Request{}, header: header, claim: &sigv4.Signature{Scheme: sigv4.PresignedV4}}
	for key, want := range map[string]string{"s3:x-amz-grant-read": "id=bob,uri=all", "s3:x-amz-content-sha256": "UNSIGNED-PAYLOAD"} {
		if v, ok := q.Value(key); !ok || v[0] != want {
			t.Errorf("%s is %v", key, v)
		}
	}
}

// TestPolicyHeaderLines: a header that is there twice is not one thing to policies and another to
// what acts.
func TestPolicyHeaderLines(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "twice")
	d.wantRaw("alice", "PUT", "/twice/k", []byte("v"), nil, 200, "")
	send := func(method, target string, body []byte, header http.Header) (int, string) {
		r := d.request(method, target, body, nil)
		for name, lines := range header {
			r.Header[name] = lines
		}
		d.sign(r, "bob", body, time.Now())
		res, got := d.do(r)
		return res.StatusCode, got
	}
	const all = `{"Effect":"Allow","Principal":BOB,"Action":"s3:*","Resource":["BKT","BKT/*"]}`
	for _, c := range []struct {
		key, denied, other string
		target             string
		source             string
	}{
		{"x-amz-acl", "public-read", "private", "/twice/new", ""},
		{"x-amz-storage-class", "GLACIER", "STANDARD", "/twice/new", ""},
		{"x-amz-storage-class", "GLACIER", "", "/twice/new", ""},
		{"x-amz-server-side-encryption", "AES256", "aws:kms", "/twice/new", ""},
		{"x-amz-website-redirect-location", "/a", "/b", "/twice/new", ""},
		{"x-amz-metadata-directive", "REPLACE", "COPY", "/twice/new", "twice/k"},
		{"x-amz-copy-source", "twice/k", "twice/other", "/twice/new", ""},
		{"RequestObjectTag/class", "class=secret", "class=public", "/twice/new", ""},
		{"x-amz-object-ownership", "ObjectWriter", "BucketOwnerEnforced", "/twice-new", ""},
	} {
		_, value, tag := strings.Cut(c.denied, "class=")
		name := http.CanonicalHeaderKey(c.key)
		if tag {
			name = taggingHeader
		} else {
			value = c.denied
		}
		d.setPolicy("twice", all, `{"Effect":"Deny","Principal":BOB,"Resource":["BKT","BKT/*"],"Action":"s3:*","Condition":{"StringEquals":{"s3:`+c.key+`":"`+value+`"}}}`)
		for _, lines := range [][]string{{c.denied, c.other}, {c.other, c.denied}} {
			h := http.Header{name: lines}
			if c.source != "" {
				h.Set(copySourceHeader, c.source)
			}
			status, got := send("PUT", c.target, nil, h)
			if status != 400 || !strings.Contains(got, "<Code>InvalidArgument</Code>") || !strings.Contains(got, "<ArgumentName>"+strings.ToLower(name)+"</ArgumentName>") {
				t.Errorf("%v: %d %.300s", h, status, got)
			}
		}
	}
	d.wantRaw("alice", "GET", "/twice/new", nil, nil, 404, "NoSuchKey") // none was made

	// Lists may have several lines, of which both sides read all.
	d.setPolicy("twice", all, `{"Effect":"Deny","Principal":BOB,"Resource":["BKT","BKT/*"],"Action":"s3:*","Condition":{"StringLike":{"s3:x-amz-grant-read":"*AllUsers*"}}}`)
	users, everybody := `uri="`+groupAuthenticated+`"`, `uri="`+groupAll+`"`
	for _, lines := range [][]string{{users, everybody}, {everybody, users}, {"", everybody}} {
		if status, got := send("PUT", "/twice/new", nil, http.Header{"X-Amz-Grant-Read": lines}); status != 403 {
			t.Errorf("%v: %d %.300s", lines, status, got)
		}
	}
	for _, c := range []struct {
		method, target string
		header         http.Header
	}{
		{"PUT", "/twice/new", http.Header{"X-Amz-Grant-Read": {users, users}, "X-Amz-Meta-A": {"b", "c"}, "If-None-Match": {"a", "b"}}},
		{"GET", "/twice/new?attributes", http.Header{"X-Amz-Object-Attributes": {"ETag", "ObjectSize"}}},
		{"PUT", "/twice/copy", http.Header{copySourceHeader: {"twice/k"}, copySourcePrefix + "If-Match": {`"a"`, "*"}, copySourcePrefix + "If-None-Match": {`"a"`, `"b"`}}},
	} {
		if status, got := send(c.method, c.target, nil, c.header); status != 200 {
			t.Errorf("%s %s %v: %d %.300s", c.method, c.target, c.header, status, got)
		}
	}
	// Of a parameter that is there twice, both read the first.
	d.setPolicy("twice", `{"Effect":"Allow","Principal":BOB,"Action":"s3:ListBucket","Resource":"BKT","Condition":{"StringEquals":{"s3:prefix":"n"},"NumericLessThan":{"s3:max-keys":"2"}}}`)
	for query, want := range map[string]int{
		"prefix=n&prefix=k&max-keys=1&max-keys=9": 200, "prefix=k&prefix=n&max-keys=1": 403, "prefix=n&max-keys=9&max-keys=1": 403,
	} {
		r := d.request("GET", "/twice?"+query, nil, nil)
		d.sign(r, "bob", nil, time.Now())
		r.URL.RawQuery = query // which the signer sorted
		if res, got := d.do(r); res.StatusCode != want || want == 200 && !strings.Contains(got, "<Prefix>n</Prefix><MaxKeys>1</MaxKeys>") {
			t.Errorf("%s: %d %.300s", query, res.StatusCode, got)
		}
	}
}

// TestPolicyEmptyHeaders: a header that says nothing, and by which nothing is done, is not there to
// policies that demand it.
func TestPolicyEmptyHeaders(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "empty")
	for _, c := range []struct{ key, value string }{
		{"x-amz-acl", ""}, {"x-amz-server-side-encryption", ""}, {"x-amz-grant-read", ""},
		{"x-amz-storage-class", ""}, {"if-none-match", ""}, {"if-none-match", ","}, {"if-match", " , "},
	} {
		d.setPolicy("empty", `{"Effect":"Allow","Principal":BOB,"Action":"s3:*","Resource":"BKT/*"}`,
			`{"Effect":"Deny","Principal":BOB,"Action":"s3:PutObject","Resource":"BKT/*","Condition":{"Null":{"s3:`+c.key+`":"true"}}}`)
		d.wantRaw("bob", "PUT", "/empty/k", []byte("v"), map[string]string{c.key: c.value}, 403, "AccessDenied")
	}
	d.wantRaw("alice", "PUT", "/empty/k", []byte("v"), nil, 200, "")
	d.wantRaw("bob", "PUT", "/empty/k", []byte("v"), map[string]string{"If-Match": "*"}, 200, "")
}

// TestPolicyTagsOfRequest: the tags that policies see are those that the object gets, whatever else
// the request has.
func TestPolicyTagsOfRequest(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "tagged")
	type h = map[string]string
	for _, class := range []string{"public", "secret"} {
		d.wantRaw("alice", "PUT", "/tagged/"+class, []byte("v"), h{"X-Amz-Tagging": "class=" + class}, 200, "")
	}
	_, started := d.wantRaw("alice", "POST", "/tagged/up?uploads", nil, nil, 200, "<UploadId>")
	_, id, _ := strings.Cut(started, "<UploadId>")
	id, _, _ = strings.Cut(id, "<")
	const all = `{"Effect":"Allow","Principal":"*","Action":"s3:*","Resource":["BKT","BKT/*"]}`
	deny := func(condition string) string {
		return `{"Effect":"Deny","Principal":"*","Resource":"BKT/*","Action":"s3:PutObject","Condition":{` + condition + `}}`
	}
	secret, notPublic := deny(`"StringEquals":{"s3:RequestObjectTag/class":"secret"}`), deny(`"StringNotEquals":{"s3:RequestObjectTag/class":"public"}`)
	noNames := deny(`"ForAnyValue:StringEquals":{"s3:RequestObjectTagKeys":["class"]}`)
	notCopied := deny(`"StringNotEquals":{"s3:x-amz-copy-source":"tagged/public"}`)
	for _, c := range []struct {
		policy, method, target string
		header                 h
		status                 int
	}{
		{secret, "POST", "/tagged/new?uploads", h{"X-Amz-Tagging": "class=secret"}, 403},
		{secret, "POST", "/tagged/new?uploads", h{"X-Amz-Tagging": "class=secret", "X-Amz-Copy-Source": "tagged/public"}, 403},
		{noNames, "POST", "/tagged/new?uploads", h{"X-Amz-Tagging": "class=secret", "X-Amz-Copy-Source": "tagged/public"}, 403},
		{notCopied, "POST", "/tagged/new?uploads", h{"X-Amz-Copy-Source": "tagged/public"}, 403},
		{notPublic, "PUT", "/tagged/up?partNumber=1&uploadId=" + escape(id), h{"X-Amz-Tagging": "class=public"}, 403},
		{notPublic, "PUT", "/tagged/new", h{"X-Amz-Tagging": "class=public", "X-Amz-Copy-Source": "tagged/secret"}, 403},
		{secret, "PUT", "/tagged/new", h{"X-Amz-Tagging": "class=public", "X-Amz-Copy-Source": "tagged/secret"}, 403},
		{secret, "PUT", "/tagged/new", h{"X-Amz-Tagging": "class=secret", "X-Amz-Copy-Source": "tagged/public", "X-Amz-Tagging-Directive": "REPLACE"}, 403},
		{secret, "PUT", "/tagged/copy", h{"X-Amz-Tagging": "class=secret", "X-Amz-Copy-Source": "tagged/public"}, 200},
		{notPublic, "PUT", "/tagged/copy", h{"X-Amz-Copy-Source": "tagged/public"}, 200},
		{notPublic, "PUT", "/tagged/copy", h{"X-Amz-Tagging": "class=public", "X-Amz-Copy-Source": "tagged/secret", "X-Amz-Tagging-Directive": "REPLACE"}, 200},
		{notPublic, "PUT", "/tagged/copy", h{"X-Amz-Tagging": "class=public"}, 200},
		{notCopied, "PUT", "/tagged/copy", h{"X-Amz-Copy-Source": "tagged/public"}, 200},
	} {
		d.setPolicy("tagged", all, c.policy)
		if res, got := d.raw("bob", c.method, c.target, nil, c.header); res.StatusCode != c.status {
			t.Errorf("%s %s %v, %s: %d %.200s", c.method, c.target, c.header, c.policy, res.StatusCode, got)
		}
	}
	document := func(class string) string {
		return "<Tagging><TagSet><Tag><Key>class</Key><Value>" + class + "</Value></Tag></TagSet></Tagging>"
	}
	for _, c := range []struct {
		policy string
		fields [][2]string
		header h
		status int
	}{
		{secret, [][2]string{{"tagging", document("secret")}}, nil, 403},
		{secret, [][2]string{{"tagging", document("secret")}, {"x-amz-copy-source", "tagged/public"}}, nil, 403},
		{secret, [][2]string{{"tagging", document("secret")}}, h{"X-Amz-Copy-Source": "tagged/public", "X-Amz-Tagging": "class=public"}, 403},
		{strings.Replace(secret, "s3:PutObject", "s3:*", 1), [][2]string{{"tagging", document("secret")}}, h{"X-Amz-Tagging": "class=public"}, 403},
		{notCopied, [][2]string{{"x-amz-copy-source", "tagged/public"}}, nil, 403},
		{secret, [][2]string{{"tagging", document("public")}, {"x-amz-copy-source", "tagged/secret"}}, nil, 204},
	} {
		d.setPolicy("tagged", all, c.policy)
		kind, body := form(append([][2]string{{"key", "form"}}, c.fields...), "v")
		header := h{"Content-Type": kind}
		for name, v := range c.header {
			header[name] = v
		}
		if res, got := d.raw("", "POST", "/tagged", body, header); res.StatusCode != c.status {
			t.Errorf("form %v %v, %s: %d %.200s", c.fields, c.header, c.policy, res.StatusCode, got)
		}
	}
}

// TestPolicyOfCopiedTags: the tags that a copy gets are those that policies saw, while somebody
// else changes those of the source.
func TestPolicyOfCopiedTags(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "racy")
	d.wantRaw("alice", "PUT", "/racy/k", []byte("v"), map[string]string{"X-Amz-Tagging": "class=public"}, 200, "")
	d.setPolicy("racy", `{"Effect":"Allow","Principal":BOB,"Action":"s3:*","Resource":["BKT","BKT/*"]}`,
		`{"Effect":"Deny","Principal":BOB,"Action":"s3:PutObject","Resource":"BKT/*","Condition":{"StringEquals":{"s3:RequestObjectTag/class":"secret"}}}`)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := d.fs.SetObjectTags(bg, vfs.ObjectName{Bucket: "racy", Key: "k"}, []string{"class=secret", "class=public"}[i%2]); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	made := 0
	for i := range 300 {
		if t.Failed() {
			break
		}
		header := map[string]string{"X-Amz-Copy-Source": "racy/k"}
		if i%2 == 1 { // metadata is merged, then
			header["X-Amz-Metadata-Directive"] = "REPLACE"
		}
		res, got := d.raw("bob", "PUT", "/racy/copy", nil, header)
		switch res.StatusCode {
		case 200:
			made++
			info, err := d.fs.HeadObject(bg, vfs.ObjectName{Bucket: "racy", Key: "copy"}, vfs.GetOptions{})
			if err != nil || info.Meta.Tags() != "class=public" {
				t.Errorf("copy %d has the tags %s, %v", i, info.Meta.Tags(), err)
			}
		case 403, 503:
		default:
			t.Errorf("%d %s", res.StatusCode, got)
		}
	}
	close(stop)
	<-done
	if made == 0 {
		t.Error("nothing was copied")
	}
}

// TestPolicyOfBatches: each key of DeleteObjects is asked for, and conditions see TLS.
func TestPolicyOfBatches(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "batch")
	for _, k := range []string{"a/1", "b/1"} {
		d.wantRaw("alice", "PUT", "/batch/"+k, []byte("v"), nil, 200, "")
	}
	d.setPolicy("batch", `{"Effect":"Allow","Principal":BOB,"Action":"s3:DeleteObject","Resource":"BKT/a/*"}`)
	res, got := d.raw("bob", "POST", "/batch?delete", []byte("<Delete><Object><Key>a/1</Key></Object><Object><Key>b/1</Key></Object></Delete>"), map[string]string{"Content-Md5": ""})
	if res.StatusCode == 400 { // the digest is demanded
		_, got = d.raw("bob", "POST", "/batch?delete", []byte("<Delete><Object><Key>a/1</Key></Object><Object><Key>b/1</Key></Object></Delete>"), nil)
	}
	if !strings.Contains(got, "<Deleted><Key>a/1</Key></Deleted>") || !strings.Contains(got, "<Error><Key>b/1</Key><Code>AccessDenied</Code>") {
		t.Error(got)
	}
	q := conditionKeys{r: &http.Request{TLS: &tls.ConnectionState{Version: tls.VersionTLS13}}}
	for key, want := range map[string]string{"aws:securetransport": "true", "s3:tlsversion": "1.3"} {
		if v, ok := q.Value(key); !ok || v[0] != want {
			t.Errorf("%s is %v", key, v)
		}
	}
}

// TestConditionsHideKeys: who may write and delete, and neither read nor list, does not
// learn by conditions which keys exist.
func TestConditionsHideKeys(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "hide")
	d.setPolicy("hide", `{"Effect":"Allow","Principal":BOB,"Action":["s3:PutObject","s3:DeleteObject"],"Resource":"BKT/*"}`)
	now := time.Now().UTC().Format(http.TimeFormat)
	d.wantRaw("alice", "PUT", "/hide/there", []byte("v"), nil, 200, "")
	for _, c := range []struct{ method, header, value string }{
		{"DELETE", "If-Unmodified-Since", now}, {"DELETE", "X-Amz-If-Match-Size", "1"}, {"DELETE", "X-Amz-If-Match-Size", "2"},
		{"DELETE", "X-Amz-If-Match-Last-Modified-Time", now}, {"DELETE", "If-Match", "*"}, {"PUT", "If-Unmodified-Since", now}, {"PUT", "If-Match", "*"},
	} {
		for _, k := range []string{"there", "missing"} {
			d.wantRaw("bob", c.method, "/hide/"+k, nil, map[string]string{c.header: c.value}, 403, "<Code>AccessDenied<")
		}
	}
	list := "<Delete>"
	for _, k := range []string{"there", "missing"} {
		list += "<Object><Key>" + k + "</Key><Size>1</Size></Object><Object><Key>" + k + "</Key><LastModifiedTime>" + now + "</LastModifiedTime></Object>"
	}
	_, got := d.wantRaw("bob", "POST", "/hide?delete", []byte(list+"</Delete>"), nil, 200, "")
	if strings.Count(got, "<Code>AccessDenied</Code>") != 4 {
		t.Error(got)
	}
	d.wantRaw("bob", "PUT", "/hide/new", []byte("v"), map[string]string{"If-None-Match": "*"}, 200, "")
	d.wantRaw("bob", "DELETE", "/hide/missing", nil, nil, 204, "")
	d.setPolicy("hide", `{"Effect":"Allow","Principal":BOB,"Action":"s3:DeleteObject","Resource":"BKT/*"}`,
		`{"Effect":"Allow","Principal":BOB,"Action":"s3:ListBucket","Resource":"BKT"}`)
	d.wantRaw("bob", "DELETE", "/hide/missing", nil, map[string]string{"X-Amz-If-Match-Size": "1"}, 204, "")
}

// TestPolicyOfAttributes: GetObjectAttributes demands two rights.
func TestPolicyOfAttributes(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "attrs")
	d.wantRaw("alice", "PUT", "/attrs/k", []byte("v"), nil, 200, "")
	for actions, status := range map[string]int{`"s3:GetObject"`: 403, `"s3:GetObjectAttributes"`: 403, `"s3:GetObject","s3:GetObjectAttributes"`: 200} {
		d.setPolicy("attrs", `{"Effect":"Allow","Principal":BOB,"Action":[`+actions+`],"Resource":"BKT/*"}`)
		d.wantRaw("bob", "GET", "/attrs/k?attributes", nil, map[string]string{"X-Amz-Object-Attributes": "ETag"}, status, "")
	}
}

func TestPolicySDK(t *testing.T) {
	d := openDoor(t, Config{})
	c := d.bucket("alice", "sdk")
	text := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"` + d.userID("bob") + `"},"Action":["s3:GetObject","s3:ListBucket"],"Resource":["arn:aws:s3:::sdk","arn:aws:s3:::sdk/*"]}]}`
	if _, err := c.PutBucketPolicy(t.Context(), &awss3.PutBucketPolicyInput{Bucket: aws.String("sdk"), Policy: &text}); err != nil {
		t.Fatal(err)
	}
	put(t, c, "sdk", "k", "v")
	if got := get(t, d.client("bob"), "sdk", "k"); got != "v" {
		t.Error(got)
	}
	out, err := c.GetBucketPolicyStatus(t.Context(), &awss3.GetBucketPolicyStatusInput{Bucket: aws.String("sdk")})
	if err != nil || *out.PolicyStatus.IsPublic {
		t.Errorf("%+v %v", out, err)
	}
	if _, err := c.DeleteBucketPolicy(t.Context(), &awss3.DeleteBucketPolicyInput{Bucket: aws.String("sdk")}); err != nil {
		t.Error(err)
	}
	_, err = c.GetBucketPolicy(t.Context(), &awss3.GetBucketPolicyInput{Bucket: aws.String("sdk")})
	wantCode(t, "no policy", err, "NoSuchBucketPolicy")
}
