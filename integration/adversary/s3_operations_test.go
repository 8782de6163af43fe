package adversary

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"ogw/httpapi/s3"
	"ogw/integration/testenv"
)

// attack is one S3 operation against alice's bucket "hers", which holds "secret"
// and an upload of "big".
type attack struct {
	target  string // UPLOAD stands for the upload's ID
	body    string
	headers []string
	status  int // other than 403
}

const (
	publicACL   = `<AccessControlPolicy><AccessControlList><Grant><Grantee xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="Group"><URI>http://acs.amazonaws.com/groups/global/AllUsers</URI></Grantee><Permission>FULL_CONTROL</Permission></Grant></AccessControlList></AccessControlPolicy>`
	taggingDoc  = `<Tagging><TagSet><Tag><Key>of</Key><Value>mallory</Value></Tag></TagSet></Tagging>`
	ownTags     = `<Tagging><TagSet><Tag><Key>of</Key><Value>alice</Value></Tag></TagSet></Tagging>`
	corsDoc     = `<CORSConfiguration><CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET</AllowedMethod></CORSRule></CORSConfiguration>`
	policyDoc   = `{"Statement":{"Effect":"Allow","Principal":"*","Action":"s3:GetObject","Resource":"arn:aws:s3:::hers/*"}}`
	blockDoc    = `<PublicAccessBlockConfiguration><BlockPublicAcls>false</BlockPublicAcls></PublicAccessBlockConfiguration>`
	ownDoc      = `<OwnershipControls><Rule><ObjectOwnership>BucketOwnerEnforced</ObjectOwnership></Rule></OwnershipControls>`
	payerDoc    = `<RequestPaymentConfiguration><Payer>BucketOwner</Payer></RequestPaymentConfiguration>`
	deleteDoc   = `<Delete><Object><Key>secret</Key></Object></Delete>`
	completeDoc = `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>ETAG</ETag></Part></CompleteMultipartUpload>`
	formType    = "multipart/form-data; boundary=x"
	formBody    = "--x\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\nsecret\r\n--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\nforged\r\n--x--\r\n"
)

// preflightHeaders ask what a page of another origin may do.
var preflightHeaders = []string{"Origin", "http://evil.example", "Access-Control-Request-Method", "GET"}

// attacks has a row for each operation that the router names, and for those
// that headers choose.
func attacks() map[string]attack {
	return map[string]attack{
		"ListBuckets SERVICE GET ":                     {target: "/", status: 200}, // one's own
		"ListObjects BUCKET GET ":                      {target: "/hers"},
		"GetBucketAcl BUCKET GET acl":                  {target: "/hers?acl"},
		"GetBucketLocation BUCKET GET location":        {target: "/hers?location"},
		"ListMultipartUploads BUCKET GET uploads":      {target: "/hers?uploads"},
		"ListObjectsV2 BUCKET GET list-type":           {target: "/hers?list-type=2"},
		"HeadBucket BUCKET HEAD ":                      {target: "/hers"},
		"CreateBucket BUCKET PUT ":                     {target: "/hers", status: http.StatusConflict},
		"PutBucketAcl BUCKET PUT acl":                  {target: "/hers?acl", body: publicACL},
		"PostObject BUCKET POST ":                      {target: "/hers", body: formBody, headers: []string{"Content-Type", formType}},
		"DeleteObjects BUCKET POST delete":             {target: "/hers?delete", body: deleteDoc},
		"DeleteBucket BUCKET DELETE ":                  {target: "/hers"},
		"PreflightRequest BUCKET OPTIONS ":             {target: "/hers", headers: preflightHeaders},
		"GetObject OBJECT GET ":                        {target: "/hers/secret"},
		"GetObjectAcl OBJECT GET acl":                  {target: "/hers/secret?acl"},
		"GetObjectTagging OBJECT GET tagging":          {target: "/hers/secret?tagging"},
		"ListParts OBJECT GET uploadId":                {target: "/hers/big?uploadId=UPLOAD"},
		"HeadObject OBJECT HEAD ":                      {target: "/hers/secret"},
		"PutObject OBJECT PUT ":                        {target: "/hers/secret", body: "forged"},
		"PutObjectAcl OBJECT PUT acl":                  {target: "/hers/secret?acl", body: publicACL},
		"PutObjectTagging OBJECT PUT tagging":          {target: "/hers/secret?tagging", body: taggingDoc},
		"UploadPart OBJECT PUT uploadId":               {target: "/hers/big?uploadId=UPLOAD&partNumber=1", body: "forged"},
		"UploadPart OBJECT PUT partNumber":             {target: "/hers/big?partNumber=1&uploadId=UPLOAD", body: "forged"},
		"PostObject OBJECT POST ":                      {target: "/hers/secret", body: "forged", status: http.StatusMethodNotAllowed},
		"CreateMultipartUpload OBJECT POST uploads":    {target: "/hers/secret?uploads"},
		"CompleteMultipartUpload OBJECT POST uploadId": {target: "/hers/big?uploadId=UPLOAD", body: completeDoc},
		"DeleteObject OBJECT DELETE ":                  {target: "/hers/secret"},
		"DeleteObjectTagging OBJECT DELETE tagging":    {target: "/hers/secret?tagging"},
		"AbortMultipartUpload OBJECT DELETE uploadId":  {target: "/hers/big?uploadId=UPLOAD"},
		"PreflightRequest OBJECT OPTIONS ":             {target: "/hers/secret", headers: preflightHeaders},

		"PutBucketCors BUCKET PUT cors":                                 {target: "/hers?cors", body: corsDoc},
		"PutBucketPolicy BUCKET PUT policy":                             {target: "/hers?policy", body: policyDoc},
		"PutBucketOwnershipControls BUCKET PUT ownershipControls":       {target: "/hers?ownershipControls", body: ownDoc},
		"PutPublicAccessBlock BUCKET PUT publicAccessBlock":             {target: "/hers?publicAccessBlock", body: blockDoc},
		"PutBucketRequestPayment BUCKET PUT requestPayment":             {target: "/hers?requestPayment", body: payerDoc},
		"GetObjectAttributes OBJECT GET attributes":                     {target: "/hers/secret?attributes", headers: []string{"X-Amz-Object-Attributes", "ETag,ObjectSize"}},
		"GetObjectLegalHold OBJECT GET legal-hold":                      {target: "/hers/secret?legal-hold"},
		"GetObjectRetention OBJECT GET retention":                       {target: "/hers/secret?retention"},
		"PutBucketTagging BUCKET PUT tagging":                           {target: "/hers?tagging", body: taggingDoc},
		"ListObjectVersions BUCKET GET versions":                        {target: "/hers?versions"},
		"GetBucketTagging BUCKET GET tagging":                           {target: "/hers?tagging"},
		"GetBucketCors BUCKET GET cors":                                 {target: "/hers?cors"},
		"GetBucketEncryption BUCKET GET encryption":                     {target: "/hers?encryption"},
		"GetBucketLifecycleConfiguration BUCKET GET lifecycle":          {target: "/hers?lifecycle"},
		"GetObjectLockConfiguration BUCKET GET object-lock":             {target: "/hers?object-lock"},
		"GetBucketOwnershipControls BUCKET GET ownershipControls":       {target: "/hers?ownershipControls"},
		"GetBucketPolicy BUCKET GET policy":                             {target: "/hers?policy"},
		"GetBucketPolicyStatus BUCKET GET policyStatus":                 {target: "/hers?policyStatus"},
		"GetPublicAccessBlock BUCKET GET publicAccessBlock":             {target: "/hers?publicAccessBlock"},
		"GetBucketReplication BUCKET GET replication":                   {target: "/hers?replication"},
		"GetBucketWebsite BUCKET GET website":                           {target: "/hers?website"},
		"GetBucketAccelerateConfiguration BUCKET GET accelerate":        {target: "/hers?accelerate"},
		"GetBucketLogging BUCKET GET logging":                           {target: "/hers?logging"},
		"GetBucketNotificationConfiguration BUCKET GET notification":    {target: "/hers?notification"},
		"GetBucketRequestPayment BUCKET GET requestPayment":             {target: "/hers?requestPayment"},
		"GetBucketVersioning BUCKET GET versioning":                     {target: "/hers?versioning"},
		"DeleteBucketTagging BUCKET DELETE tagging":                     {target: "/hers?tagging"},
		"DeleteBucketCors BUCKET DELETE cors":                           {target: "/hers?cors"},
		"DeleteBucketEncryption BUCKET DELETE encryption":               {target: "/hers?encryption"},
		"DeleteBucketLifecycle BUCKET DELETE lifecycle":                 {target: "/hers?lifecycle"},
		"DeleteBucketOwnershipControls BUCKET DELETE ownershipControls": {target: "/hers?ownershipControls"},
		"DeleteBucketPolicy BUCKET DELETE policy":                       {target: "/hers?policy"},
		"DeletePublicAccessBlock BUCKET DELETE publicAccessBlock":       {target: "/hers?publicAccessBlock"},
		"DeleteBucketReplication BUCKET DELETE replication":             {target: "/hers?replication"},
		"DeleteBucketWebsite BUCKET DELETE website":                     {target: "/hers?website"},

		"RenameObject OBJECT PUT renameObject": {target: "/hers/stolen?renameObject", headers: []string{"X-Amz-Rename-Source", "secret"}},
		"RenameObject over OBJECT PUT ":        {target: "/hers/secret?renameObject", headers: []string{"X-Amz-Rename-Source", "none"}},
		"RenameObject all OBJECT PUT ":         {target: "/hers/d/?renameObject", headers: []string{"X-Amz-Rename-Source", "e/", "X-Ogw-Rename-Directory", "true"}},
		"PutObject append OBJECT PUT ":         {target: "/hers/secret", body: "forged", headers: []string{"X-Amz-Write-Offset-Bytes", "9"}},

		"CopyObject from OBJECT PUT ":     {target: "/his/stolen", headers: []string{"X-Amz-Copy-Source", "/hers/secret"}},
		"CopyObject over OBJECT PUT ":     {target: "/hers/secret", headers: []string{"X-Amz-Copy-Source", "/his/own"}},
		"UploadPartCopy from OBJECT PUT ": {target: "/his/up?uploadId=HIS&partNumber=1", headers: []string{"X-Amz-Copy-Source", "/hers/secret"}},
		"UploadPartCopy into OBJECT PUT ": {target: "/hers/big?uploadId=UPLOAD&partNumber=2", headers: []string{"X-Amz-Copy-Source", "/his/own"}},
	}
}

// TestEveryS3Operation: each operation that the router names, as a stranger and
// as another user, against a private bucket and its object.
func TestEveryS3Operation(t *testing.T) {
	s := newServer(t, testenv.ServerOptions{})
	alice, bob := newPerson(t, s, "alice"), newPerson(t, s, "bob")
	do := func(p person, method, target, body string, headers ...string) string {
		t.Helper()
		return must(t, method+" "+target)(p.s3(t, s, method, target, body, headers...))
	}
	do(alice, "PUT", "/hers", "")
	do(alice, "PUT", "/hers?tagging", ownTags)
	do(alice, "PUT", "/hers/secret", "for alice", "X-Amz-Tagging", "of=alice")
	upload := uploadID(t, do(alice, "POST", "/hers/big?uploads", ""))
	do(alice, "PUT", "/hers/big?partNumber=1&uploadId="+upload, "part")
	do(bob, "PUT", "/his", "")
	do(bob, "PUT", "/his/own", "of bob")
	his := uploadID(t, do(bob, "POST", "/his/up?uploads", ""))

	must(t, "a form of bob's own")(person{}.s3(t, s, "POST", "/his", signedForm(bob, "his", "form"), "Content-Type", formType))

	// All that alice sees of what is hers; dates of reading are not in it.
	state := func() string {
		all := ""
		for _, target := range []string{"/hers?list-type=2", "/hers?acl", "/hers?uploads", "/hers?tagging", "/hers/secret", "/hers/secret?acl",
			"/hers/secret?tagging", "/hers/big?uploadId=" + upload, "/"} {
			all += target + "\n" + do(alice, "GET", target, "") + "\n"
		}
		return all
	}
	before := state()

	rows := attacks()
	for _, op := range s3.Routes() {
		if key := fmt.Sprintf("%s %s %s %s", op.Name, op.Level, op.Method, op.Query); rows[key].target == "" {
			t.Errorf("operation without an attack: %q", key)
		}
	}
	for key, a := range rows {
		method := strings.Fields(key)[len(strings.Fields(key))-1]
		if m := regexp.MustCompile(` (GET|HEAD|PUT|POST|DELETE|OPTIONS) `).FindStringSubmatch(key); m != nil {
			method = m[1]
		}
		target := strings.NewReplacer("UPLOAD", upload, "HIS", his).Replace(a.target)
		for _, p := range []person{{name: "a stranger"}, bob} {
			want := a.status
			if a.headers != nil && a.headers[1] == formType && p.key != "" {
				a.body = signedForm(p, "hers", "secret") // such a request is signed in its fields
				status, body := person{}.s3(t, s, method, target, a.body, a.headers...)
				refused(t, "a form signed by "+p.name)(status, body)
				continue
			}
			if want == 0 || want != http.StatusMethodNotAllowed && p.key == "" {
				want = http.StatusForbidden
			}
			status, body := p.s3(t, s, method, target, a.body, a.headers...)
			if status != want {
				t.Errorf("%s by %s: %d, want %d\n%.300s", key, p.name, status, want, body)
			}
			if strings.Contains(body, "for alice") || strings.Contains(body, "<Name>hers</Name>") {
				t.Errorf("%s by %s shows what is alice's:\n%.300s", key, p.name, body)
			}
			if after := state(); after != before {
				t.Fatalf("%s by %s changed what is alice's:\n%s\nwas\n%s", key, p.name, after, before)
			}
		}
	}
}

// uploadID reads the answer of CreateMultipartUpload.
func uploadID(t *testing.T, body string) string {
	t.Helper()
	m := regexp.MustCompile(`<UploadId>(.*)</UploadId>`).FindStringSubmatch(body)
	if m == nil {
		t.Fatalf("no upload: %s", body)
	}
	return m[1]
}

// signedForm is a form for a key that p signed.
func signedForm(p person, bucket, key string) string {
	return formWith(p, key, fmt.Sprintf(`{"bucket": %q}, `, bucket))
}

// formWith is a form for a key with further conditions in its policy, which
// p signed.
func formWith(p person, key, conditions string) string {
	now := time.Now().UTC()
	day, stamp := now.Format("20060102"), now.Format("20060102T150405Z")
	scope := p.key + "/" + day + "/us-east-1/s3/aws4_request"
	policy := base64.StdEncoding.EncodeToString(fmt.Appendf(nil,
		`{"expiration": %q, "conditions": [`+conditions+`{"key": %q}, ["starts-with", "$x-amz-", ""], {"x-amz-credential": %q}, {"x-amz-date": %q}, {"x-amz-algorithm": "AWS4-HMAC-SHA256"}]}`,
		now.Add(time.Hour).Format("2006-01-02T15:04:05Z"), key, scope, stamp))
	mac := []byte("AWS4" + p.secret)
	for _, part := range []string{day, "us-east-1", "s3", "aws4_request", policy} {
		h := hmac.New(sha256.New, mac)
		h.Write([]byte(part))
		mac = h.Sum(nil)
	}
	body := ""
	for _, field := range [][2]string{{"key", key}, {"policy", policy}, {"x-amz-algorithm", "AWS4-HMAC-SHA256"},
		{"x-amz-credential", scope}, {"x-amz-date", stamp}, {"x-amz-signature", hex.EncodeToString(mac)}} {
		body += fmt.Sprintf("--x\r\nContent-Disposition: form-data; name=%q\r\n\r\n%s\r\n", field[0], field[1])
	}
	return body + "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\nforged\r\n--x--\r\n"
}
