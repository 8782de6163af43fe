package s3

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"ogw/httpapi/sigv4"
	"ogw/vfs"
	"ogw/vfs/iam"
)

// errorRow is an error code: what is answered with it, and how ("Error responses" of the
// S3 API reference). An empty user does not sign.
type errorRow struct {
	code, who, method, target, body string
	header                          map[string]string
	status                          int
	says                            string // behind the code
}

// message is what the XML has behind the code.
func message(text string, details ...string) string {
	out := "<Message>" + text + "</Message>"
	for i := 0; i < len(details); i += 2 {
		out += "<" + details[i] + ">" + details[i+1] + "</" + details[i] + ">"
	}
	return out
}

func one(name, value string) map[string]string { return map[string]string{name: value} }

// errorTable has a line for each code that a request alone brings about, in a bucket
// "tbl" of alice's with objects "k" and "dir/k".
func errorTable() []errorRow {
	const malformedXML = "The XML you provided was not well-formed or did not validate against our published schema."
	kind, noKey := form([][2]string{{"key", ""}}, "x")
	asForm := one("Content-Type", kind)
	long, tooMuch := form([][2]string{{"key", "k"}, {"x-amz-meta-a", strings.Repeat("a", 1<<20)}}, "x")
	bad, badPolicy := form(signedFormV2(`{"conditions": []}`, [2]string{"key", "k"}), "x")
	rename := one("X-Amz-Rename-Source", "dir/")
	rename["X-Ogw-Rename-Directory"] = "true"
	owned := one("X-Amz-Object-Ownership", "BucketOwnerEnforced")
	owned["X-Amz-Acl"] = "public-read"
	origin := one("Origin", "https://app.example")
	origin["Access-Control-Request-Method"] = "GET"
	now := time.Now().UTC()
	signed := func(day, stamp string) map[string]string {
		return map[string]string{"X-Amz-Date": stamp, "X-Amz-Content-Sha256": "UNSIGNED-PAYLOAD",
			"Authorization": "AWS4-HMAC-SHA256 Credential=KEYalice/" + day + "/us-east-1/s3/aws4_request, SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature=" + strings.Repeat("0", 64)}
	}
	notSet := func(code, query, text string) errorRow {
		return errorRow{code, "alice", "GET", "/tbl?" + query, "", nil, 404, message(text, "BucketName", "tbl")}
	}
	return []errorRow{
		{"AccessControlListNotSupported", "alice", "PUT", "/owned/k", "v", one("X-Amz-Acl", "public-read"), 400, message("The bucket does not allow ACLs")},
		{"AccessDenied", "bob", "GET", "/tbl/k", "", nil, 403, message("Access Denied.")},
		{"AccessForbidden", "", "OPTIONS", "/tbl/k", "", origin, 403, message("CORSResponse: CORS is not enabled for this bucket.")},
		{"AuthorizationHeaderMalformed", "", "GET", "/tbl", "", one("Authorization", "AWS4-HMAC-SHA256 Credential=a"), 400, message("The authorization header is malformed; the authorization header requires three components: Credential, SignedHeaders, and Signature.")},
		{"AuthorizationQueryParametersError", "", "GET", "/tbl?X-Amz-Algorithm=AWS4-HMAC-SHA256", "", nil, 400, "<Message>Query-string authentication version 4 requires the X-Amz-Algorithm, X-Amz-Credential, X-Amz-Signature,"},
		{"BadDigest", "alice", "PUT", "/tbl/k", "v", one("Content-Md5", "AAAAAAAAAAAAAAAAAAAAAA=="), 400, message("The Content-MD5 you specified did not match what we received.", "CalculatedDigest", "njZp0ZtnW9VwWP1GZCBdKg==", "ExpectedDigest", "AAAAAAAAAAAAAAAAAAAAAA==")},
		{"BadRequest", "", "OPTIONS", "/tbl/k", "", nil, 400, message("Insufficient information. Origin request header needed.")},
		{"BucketAlreadyExists", "bob", "PUT", "/tbl", "", nil, 409, "<Message>The requested bucket name is not available. The bucket namespace is shared by all users of the system."},
		{"BucketAlreadyOwnedByYou", "alice", "PUT", "/tbl", "", nil, 409, message("Your previous request to create the named bucket succeeded and you already own it.")},
		{"BucketNotEmpty", "alice", "DELETE", "/tbl", "", nil, 409, message("The bucket you tried to delete is not empty.", "BucketName", "tbl")},
		{"DirectoryNotEmpty", "alice", "PUT", "/tbl/full/?renameObject", "", rename, 409, message("The directory that you tried to rename to is not empty.")},
		{"EntityTooLarge", "alice", "PUT", "/tbl/k", strings.Repeat("v", 100_001), nil, 400, message("Your proposed upload exceeds the maximum allowed object size.", "ProposedSize", "100001", "MaxSizeAllowed", "100000")},
		{"InvalidAccessKeyId", "nobody", "GET", "/tbl", "", nil, 403, message("The AWS Access Key Id you provided does not exist in our records.", "AWSAccessKeyId", "KEYnobody")},
		{"InvalidArgument", "alice", "PUT", "/tbl/k", "v", one("X-Amz-Acl", "loud"), 400, "<ArgumentName>x-amz-acl</ArgumentName><ArgumentValue>loud</ArgumentValue>"},
		{"InvalidBucketAclWithObjectOwnership", "alice", "PUT", "/other", "", owned, 400, message("Bucket cannot have ACLs set with ObjectOwnership's BucketOwnerEnforced setting")},
		{"InvalidBucketName", "alice", "PUT", "/BAD_NAME", "", nil, 400, message("The specified bucket is not valid.", "BucketName", "BAD_NAME")},
		{"InvalidDigest", "alice", "PUT", "/tbl/k", "v", one("Content-Md5", ""), 400, message("The Content-Md5 you specified is not valid.", "Content-MD5", "")},
		{"InvalidLocationConstraint", "alice", "PUT", "/other", "<CreateBucketConfiguration><LocationConstraint>mars</LocationConstraint></CreateBucketConfiguration>", nil, 400, message("The specified location-constraint is not valid", "LocationConstraint", "mars")},
		{"InvalidPart", "alice", "POST", "/tbl/up?uploadId=UPLOAD", completeDoc("7", "etag"), nil, 400, "<Message>One or more of the specified parts could not be found.  The part may not have been uploaded, or the specified entity tag may not match the part's entity tag.</Message><PartNumber>7</PartNumber>"},
		{"InvalidPartNumber", "alice", "GET", "/tbl/k?partNumber=2", "", nil, 416, message("The requested partnumber is not satisfiable.", "PartNumberRequested", "2", "ActualPartCount", "1")},
		{"InvalidPartOrder", "alice", "POST", "/tbl/up?uploadId=UPLOAD", completeDoc("2", "PART2", "1", "PART1"), nil, 400, message("The list of parts was not in ascending order. Parts must be ordered by part number.")},
		{"EntityTooSmall", "alice", "POST", "/tbl/up?uploadId=UPLOAD", completeDoc("1", "PART1", "2", "PART2"), nil, 400, "<Message>Your proposed upload is smaller than the minimum allowed size</Message><ProposedSize>3</ProposedSize><MinSizeAllowed>5242880</MinSizeAllowed><PartNumber>1</PartNumber>"},
		{"InvalidPolicyDocument", "", "POST", "/tbl", string(badPolicy), one("Content-Type", bad), 400, message("Invalid Policy: Policy missing expiration.")},
		{"InvalidRange", "alice", "GET", "/tbl/k", "", one("Range", "bytes=9-"), 416, message("The requested range is not satisfiable", "RangeRequested", "bytes=9-", "ActualObjectSize", "4")},
		{"InvalidRedirectLocation", "alice", "PUT", "/tbl/k", "v", one("X-Amz-Website-Redirect-Location", "ftp://x"), 400, message("The website redirect location must have a prefix of 'http://' or 'https://' or '/'.")},
		{"InvalidRequest", "alice", "GET", "/tbl/k?retention", "", nil, 400, message("Bucket is missing Object Lock Configuration")},
		{"InvalidStorageClass", "alice", "PUT", "/tbl/k", "v", one("X-Amz-Storage-Class", "WARM"), 400, message("The storage class that you specified is not valid.", "StorageClassRequested", "WARM")},
		{"InvalidTag", "alice", "PUT", "/tbl/k?tagging", "<Tagging><TagSet><Tag><Key>a</Key><Value>1</Value></Tag><Tag><Key>a</Key><Value>2</Value></Tag></TagSet></Tagging>", nil, 400, "<Message>"},
		{"InvalidToken", "", "GET", "/tbl", "", one("X-Amz-Security-Token", "x"), 400, message("The provided token is malformed or otherwise invalid.")},
		{"InvalidURI", "", "GET", "/tbl?a=%zz", "", nil, 400, message("The specified URI couldn't be parsed.")},
		{"InvalidWriteOffset", "alice", "PUT", "/tbl/k", "v", one("X-Amz-Write-Offset-Bytes", "99"), 400, message("The write offset value that you specified does not match the current object size.")},
		{"KeyTooLongError", "alice", "PUT", "/tbl/" + strings.Repeat("k", 1025), "v", nil, 400, message("Your key is too long.", "Size", "1025", "MaxSizeAllowed", "1024")},
		{"MalformedACLError", "alice", "PUT", "/tbl/k?acl", "<x>", nil, 400, message(malformedXML)},
		{"MalformedPOSTRequest", "", "POST", "/tbl", "no form", one("Content-Type", "multipart/form-data"), 400, message("The body of your POST request is not well-formed multipart/form-data.")},
		{"MalformedPolicy", "alice", "PUT", "/tbl?policy", "x", nil, 400, message("Policies must be valid JSON and the first byte must be &apos;{&apos;")},
		{"MalformedXML", "alice", "PUT", "/tbl/k?tagging", "<Tagging>", nil, 400, message(malformedXML)},
		{"MaxMessageLengthExceeded", "alice", "PUT", "/tbl?acl", strings.Repeat(" ", 70000), nil, 400, message("Your request was too big.", "MaxMessageLengthBytes", "65536")},
		{"MaxPostPreDataLengthExceededError", "", "POST", "/tbl", string(tooMuch), one("Content-Type", long), 400, message("Your POST request fields preceding the upload file were too large.")},
		{"MetadataTooLarge", "alice", "PUT", "/tbl/k", "v", one("X-Amz-Meta-Long", strings.Repeat("x", 2100)), 400, message("Your metadata headers exceed the maximum allowed metadata size", "Size", "2104", "MaxSizeAllowed", "2048")},
		{"MethodNotAllowed", "alice", "POST", "/tbl/k", "", nil, 405, message("The specified method is not allowed against this resource.", "Method", "POST", "ResourceType", "OBJECT")},
		{"MissingRequestBodyError", "alice", "PUT", "/tbl/k?tagging", "", nil, 400, message("Request Body is empty")},
		{"NoSuchBucket", "alice", "GET", "/none", "", nil, 404, message("The specified bucket does not exist.", "BucketName", "none")},
		notSet("NoSuchBucketPolicy", "policy", "The bucket policy does not exist"),
		notSet("NoSuchCORSConfiguration", "cors", "The CORS configuration does not exist"),
		notSet("NoSuchLifecycleConfiguration", "lifecycle", "The lifecycle configuration does not exist"),
		notSet("NoSuchPublicAccessBlockConfiguration", "publicAccessBlock", "The public access block configuration was not found"),
		notSet("NoSuchTagSet", "tagging", "The TagSet does not exist"),
		notSet("NoSuchWebsiteConfiguration", "website", "The specified bucket does not have a website configuration"),
		notSet("ObjectLockConfigurationNotFoundError", "object-lock", "Object Lock configuration does not exist for this bucket"),
		notSet("OwnershipControlsNotFoundError", "ownershipControls", "The bucket ownership controls were not found"),
		notSet("ReplicationConfigurationNotFoundError", "replication", "The replication configuration was not found"),
		notSet("ServerSideEncryptionConfigurationNotFoundError", "encryption", "The server side encryption configuration was not found"),
		{"NoSuchKey", "alice", "GET", "/tbl/none", "", nil, 404, message("The specified key does not exist.", "Key", "none")},
		{"NoSuchUpload", "alice", "GET", "/tbl/up?uploadId=none", "", nil, 404, "<Message>The specified multipart upload does not exist. The upload ID may be invalid, or the upload may have been aborted or completed.</Message><UploadId>none</UploadId>"},
		{"NoSuchVersion", "alice", "GET", "/tbl/k?versionId=none", "", nil, 404, message("The specified version does not exist.", "VersionId", "none", "Key", "k")},
		{"NotImplemented", "alice", "PUT", "/tbl/k", "v", one("X-Amz-Server-Side-Encryption", "AES256"), 501, message("A header you provided implies functionality that is not implemented.", "Header", "x-amz-server-side-encryption")},
		{"PreconditionFailed", "alice", "GET", "/tbl/k", "", one("If-Match", `"x"`), 412, message("At least one of the pre-conditions you specified did not hold.", "Condition", "If-Match")},
		{"RequestTimeTooSkewed", "", "GET", "/tbl", "", signed("20200101", "20200101T000000Z"), 403, "<Message>The difference between the request time and the current time is too large.</Message><RequestTime>20200101T000000Z</RequestTime><ServerTime>"},
		{"SignatureDoesNotMatch", "", "GET", "/tbl", "", signed(now.Format("20060102"), now.Format("20060102T150405Z")), 403, "<Message>The request signature we calculated does not match the signature you provided. Check your key and signing method.</Message><AWSAccessKeyId>KEYalice</AWSAccessKeyId><StringToSign>"},
		{"UnresolvableGrantByEmailAddress", "alice", "PUT", "/tbl/k?acl", "", one("X-Amz-Grant-Read", `emailAddress="a@example.com"`), 400, message("Grants by email address are not supported.")},
		{"UserKeyMustBeSpecified", "", "POST", "/tbl", string(noKey), asForm, 400, message("User key must have a length greater than 0.")},
		{"XAmzContentSHA256Mismatch", "alice", "PUT", "/tbl/k", "v", one("X-Amz-Content-Sha256", strings.Repeat("0", 64)), 400, message("The provided 'x-amz-content-sha256' header does not match what was computed.",
			"ClientComputedContentSHA256", strings.Repeat("0", 64), "S3ComputedContentSHA256", "4c94485e0c21ae6c41ce1dfe7b6bfaceea5ab68e40a2476f50208e526f506080")},
		{"IdempotencyParameterMismatch", "alice", "PUT", "/tbl/new2?renameObject", "", map[string]string{"X-Amz-Rename-Source": "moved", "X-Amz-Client-Token": "token"}, 400, "<Message>Parameters on this idempotent request are inconsistent with parameters used in previous request(s).</Message>"},
	}
}

// completeDoc lists parts: numbers and ETags.
func completeDoc(list ...string) string {
	doc := "<CompleteMultipartUpload>"
	for i := 0; i < len(list); i += 2 {
		doc += "<Part><PartNumber>" + list[i] + "</PartNumber><ETag>" + list[i+1] + "</ETag></Part>"
	}
	return doc + "</CompleteMultipartUpload>"
}

// causes has a line for each code that takes more than a request: a store that fails, a
// body that ends, an hour that passes.
var causes = []struct {
	code   string
	err    error
	status int
	says   string
}{
	{"ExpiredToken", iam.ErrTokenExpired, 400, message("The provided token has expired.")},
	{"IncompleteBody", vfs.ErrShortBody, 400, message("You did not provide the number of bytes specified by the Content-Length HTTP header")},
	{"InsufficientStorage", vfs.ErrNoSpace, 507, message("There is no space left in the storage cluster.")},
	{"InternalError", vfs.ErrIO, 500, message("We encountered an internal error. Please try again.")},
	{"MalformedTrailerError", sigv4.ErrMalformedTrailer, 400, message("The request contained trailing data that was not well-formed or did not conform to our published schema.")},
	{"MissingContentLength", newError(codeMissingLength), 411, message("You must provide the Content-Length HTTP header.")},
	{"OperationAborted", vfs.ErrBusy, 409, message("A conflicting operation is currently in progress against this resource. Try again.")},
	{"RequestTimeout", context.Canceled, 400, message("Your socket connection to the server was not read from or written to within the timeout period.")},
	{"ServiceUnavailable", vfs.ErrUnavailable, 503, message("Service is unable to handle request.")},
	{"SlowDown", vfs.ErrConflict, 503, message("Please reduce your request rate.")},
}

// TestErrorTable brings every error about.
func TestErrorTable(t *testing.T) {
	d := openDoor(t, Config{MaxObjectBytes: 100_000, V2: sigv4.V2All})
	d.bucket("alice", "tbl")
	for _, key := range []string{"k", "dir/k", "full/k", "moves"} {
		d.wantRaw("alice", "PUT", "/tbl/"+key, []byte("text"), nil, 200, "")
	}
	d.wantRaw("alice", "PUT", "/owned", nil, one("X-Amz-Object-Ownership", "BucketOwnerEnforced"), 200, "")
	d.wantRaw("alice", "PUT", "/tbl/moved?renameObject", nil, map[string]string{"X-Amz-Rename-Source": "moves", "X-Amz-Client-Token": "token"}, 200, "")
	_, page := d.wantRaw("alice", "POST", "/tbl/up?uploads", nil, nil, 200, "")
	names := []string{"UPLOAD", between(page, "<UploadId>", "</UploadId>")}
	for i, part := range []string{"one", "two"} {
		res, _ := d.wantRaw("alice", "PUT", fmt.Sprintf("/tbl/up?partNumber=%d&uploadId=%s", i+1, names[1]), []byte(part), nil, 200, "")
		names = append(names, fmt.Sprintf("PART%d", i+1), strings.Trim(res.Header.Get("ETag"), `"`))
	}
	fill := strings.NewReplacer(names...)
	for _, c := range errorTable() {
		res, got := d.raw(c.who, c.method, fill.Replace(c.target), []byte(fill.Replace(c.body)), c.header)
		if res.StatusCode != c.status || !strings.Contains(got, "<Code>"+c.code+"</Code>") || !strings.Contains(strings.NewReplacer("&#39;", "'", "&apos;", "'").Replace(got), strings.ReplaceAll(c.says, "&apos;", "'")) {
			t.Errorf("%s: %s %s as %q: %d %.1000s; want %d %s", c.code, c.method, c.target, c.who, res.StatusCode, got, c.status, c.says)
		}
	}
	for _, c := range causes {
		w := httptest.NewRecorder()
		writeError(w, httptest.NewRequest("PUT", "/tbl/k", nil), "tbl", "k", fmt.Errorf("put: %w", c.err))
		if got := w.Body.String(); w.Code != c.status || !strings.Contains(got, "<Code>"+c.code+"</Code>"+c.says) || (c.status == 503) != (w.Header().Get("Retry-After") != "") {
			t.Errorf("%s: %d %v %s; want %d %s", c.code, w.Code, w.Header(), got, c.status, c.says)
		}
	}
	res, got := d.raw("alice", "GET", "/tbl/k", nil, one("If-None-Match", "*"))
	if res.StatusCode != 304 || got != "" { // NotModified, which has no body
		t.Errorf("%d %s", res.StatusCode, got)
	}
}

// TestErrorTableIsComplete looks for a code in this package's source that has no line.
func TestErrorTableIsComplete(t *testing.T) {
	lines := map[string]bool{"NotModified": true}
	for _, c := range errorTable() {
		lines[c.code] = true
	}
	for _, c := range causes {
		lines[c.code] = true
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	literal := regexp.MustCompile(`\bcode\{"(\w+)", \d`)
	found := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range literal.FindAllStringSubmatch(string(text), -1) {
			if found++; !lines[m[1]] {
				t.Errorf("%s: no line for %s", name, m[1])
			}
		}
	}
	if found < len(lines) {
		t.Errorf("%d codes in the source, %d lines", found, len(lines))
	}
}
