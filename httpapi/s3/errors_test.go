package s3

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// Messages and elements of errors, on which programs match; one a line.
func TestErrorWords(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "words")
	d.wantRaw("alice", "PUT", "/words/k", []byte("text"), nil, 200, "")
	_, body := d.raw("alice", "POST", "/words/up?uploads", nil, nil)
	upload := body[strings.Index(body, "<UploadId>")+len("<UploadId>") : strings.Index(body, "</UploadId>")]
	d.wantRaw("alice", "PUT", "/words/up?partNumber=1&uploadId="+upload, []byte("small"), nil, 200, "")
	d.wantRaw("alice", "PUT", "/words/up?partNumber=2&uploadId="+upload, []byte("last"), nil, 200, "")
	const small, last = "eb5c1399a871211c7e7ed732d15e3a8b", "d508fe45cecaf653904a0e774084bb5c"
	parts := func(list ...string) string {
		doc := "<CompleteMultipartUpload>"
		for i := 0; i < len(list); i += 2 {
			doc += "<Part><PartNumber>" + list[i] + "</PartNumber><ETag>" + list[i+1] + "</ETag></Part>"
		}
		return doc + "</CompleteMultipartUpload>"
	}
	long := strings.Repeat("k", 1025)
	for _, c := range []struct {
		method, target, body string
		header               map[string]string
		status               int
		says                 string
	}{
		{"GET", "/words/none", "", nil, 404, "<Code>NoSuchKey</Code><Message>The specified key does not exist.</Message><Key>none</Key>"},
		{"GET", "/no-words", "", nil, 404, "<Code>NoSuchBucket</Code><Message>The specified bucket does not exist.</Message><BucketName>no-words</BucketName>"},
		{"DELETE", "/words", "", nil, 409, "<Code>BucketNotEmpty</Code><Message>The bucket you tried to delete is not empty.</Message><BucketName>words</BucketName>"},
		{"PUT", "/words", "", nil, 409, "<Code>BucketAlreadyOwnedByYou</Code><Message>Your previous request to create the named bucket succeeded and you already own it.</Message>"},
		{"PUT", "/BAD_NAME", "", nil, 400, "<Code>InvalidBucketName</Code><Message>The specified bucket is not valid.</Message><BucketName>BAD_NAME</BucketName>"},
		{"PUT", "/words/" + long, "v", nil, 400, "<Code>KeyTooLongError</Code><Message>Your key is too long.</Message><Size>1025</Size><MaxSizeAllowed>1024</MaxSizeAllowed>"},
		{"GET", "/words/k?versionId=none", "", nil, 404, "<Code>NoSuchVersion</Code><Message>The specified version does not exist.</Message><VersionId>none</VersionId><Key>k</Key>"},
		{"POST", "/words/k", "", nil, 405, "<Code>MethodNotAllowed</Code><Message>The specified method is not allowed against this resource.</Message><Method>POST</Method><ResourceType>OBJECT</ResourceType>"},
		{"GET", "/words/k", "", map[string]string{"Range": "bytes=9-"}, 416, "<Code>InvalidRange</Code><Message>The requested range is not satisfiable</Message><RangeRequested>bytes=9-</RangeRequested><ActualObjectSize>4</ActualObjectSize>"},
		{"GET", "/words/k?partNumber=2", "", nil, 416, "<Code>InvalidPartNumber</Code><Message>The requested partnumber is not satisfiable.</Message><PartNumberRequested>2</PartNumberRequested><ActualPartCount>1</ActualPartCount>"},
		{"GET", "/words/k", "", map[string]string{"If-Match": `"x"`}, 412, "<Code>PreconditionFailed</Code><Message>At least one of the pre-conditions you specified did not hold.</Message><Condition>If-Match</Condition>"},
		{"GET", "/words/k", "", map[string]string{"If-Unmodified-Since": "Mon, 02 Jan 2006 15:04:05 GMT"}, 412, "<Condition>If-Unmodified-Since</Condition>"},
		{"PUT", "/words/k", "v", map[string]string{"If-None-Match": "*"}, 412, "<Condition>If-None-Match</Condition>"},
		{"PUT", "/words/copy", "", map[string]string{"X-Amz-Copy-Source": "/words/k", "X-Amz-Copy-Source-If-Match": `"x"`}, 412, "<Condition>x-amz-copy-source-If-Match</Condition>"},
		{"PUT", "/words/k", "v", map[string]string{"Content-Md5": "AAAA"}, 400, "<Code>InvalidDigest</Code><Message>The Content-Md5 you specified is not valid.</Message><Content-MD5>AAAA</Content-MD5>"},
		{"PUT", "/words/k", "v", map[string]string{"Content-Md5": "AAAAAAAAAAAAAAAAAAAAAA=="}, 400, "<Code>BadDigest</Code><Message>The Content-MD5 you specified did not match what we received.</Message><CalculatedDigest>njZp0ZtnW9VwWP1GZCBdKg==</CalculatedDigest><ExpectedDigest>AAAAAAAAAAAAAAAAAAAAAA==</ExpectedDigest>"},
		{"PUT", "/words/k", "v", map[string]string{"X-Amz-Content-Sha256": "short"}, 400, "<ArgumentName>x-amz-content-sha256</ArgumentName><ArgumentValue>short</ArgumentValue>"},
		{"PUT", "/words/k", "v", map[string]string{"X-Amz-Content-Sha256": strings.Repeat("0", 64)}, 400, "<Code>XAmzContentSHA256Mismatch</Code><Message>The provided 'x-amz-content-sha256' header does not match what was computed.</Message><ClientComputedContentSHA256>" + strings.Repeat("0", 64) + "</ClientComputedContentSHA256><S3ComputedContentSHA256>4c94485e0c21ae6c41ce1dfe7b6bfaceea5ab68e40a2476f50208e526f506080</S3ComputedContentSHA256>"},
		{"PUT", "/words/k", "v", map[string]string{"X-Amz-Meta-Long": strings.Repeat("x", 2100)}, 400, "<Code>MetadataTooLarge</Code><Message>Your metadata headers exceed the maximum allowed metadata size</Message><Size>2104</Size><MaxSizeAllowed>2048</MaxSizeAllowed>"},
		{"PUT", "/words/k", "v", map[string]string{"X-Amz-Acl": "loud"}, 400, "<ArgumentName>x-amz-acl</ArgumentName><ArgumentValue>loud</ArgumentValue>"},
		{"PUT", "/words/k", "v", map[string]string{"X-Amz-Server-Side-Encryption": "AES256"}, 501, "<Code>NotImplemented</Code><Message>A header you provided implies functionality that is not implemented.</Message><Header>x-amz-server-side-encryption</Header>"},
		{"PUT", "/words/copy", "", map[string]string{"X-Amz-Copy-Source": "words"}, 400, "<Message>Copy Source must mention the source bucket and key: sourcebucket/sourcekey</Message><ArgumentName>x-amz-copy-source</ArgumentName><ArgumentValue>words</ArgumentValue>"},
		{"PUT", "/words/k?tagging", "", nil, 400, "<Code>MissingRequestBodyError</Code><Message>Request Body is empty</Message>"},
		{"PUT", "/words/k?tagging", "<Tagging>", nil, 400, "<Code>MalformedXML</Code><Message>The XML you provided was not well-formed or did not validate against our published schema.</Message>"},
		{"PUT", "/words/k?acl", "<x>", nil, 400, "<Code>MalformedACLError</Code><Message>The XML you provided was not well-formed or did not validate against our published schema.</Message>"},
		{"PUT", "/words?acl", strings.Repeat(" ", 70000), nil, 400, "<Code>MaxMessageLengthExceeded</Code><Message>Your request was too big.</Message><MaxMessageLengthBytes>65536</MaxMessageLengthBytes>"},
		{"GET", "/words/up?uploadId=none", "", nil, 404, "<Code>NoSuchUpload</Code><Message>The specified multipart upload does not exist. The upload ID may be invalid, or the upload may have been aborted or completed.</Message><UploadId>none</UploadId>"},
		{"POST", "/words/up?uploadId=" + upload, parts("1", last), nil, 400, "<Code>InvalidPart</Code><Message>One or more of the specified parts could not be found.  The part may not have been uploaded, or the specified entity tag may not match the part's entity tag.</Message><PartNumber>1</PartNumber><ETag>" + last + "</ETag><UploadId>" + upload},
		{"POST", "/words/up?uploadId=" + upload, parts("3", last), nil, 400, "<PartNumber>3</PartNumber><ETag>" + last},
		{"POST", "/words/up?uploadId=" + upload, parts("2", last, "1", small), nil, 400, "<Code>InvalidPartOrder</Code><Message>The list of parts was not in ascending order. Parts must be ordered by part number.</Message>"},
		{"POST", "/words/up?uploadId=" + upload, parts("1", small, "2", last), nil, 400, "<Code>EntityTooSmall</Code><Message>Your proposed upload is smaller than the minimum allowed size</Message><ProposedSize>5</ProposedSize><MinSizeAllowed>5242880</MinSizeAllowed><PartNumber>1</PartNumber><ETag>" + small + "</ETag>"},
	} {
		d.wantRaw("alice", c.method, c.target, []byte(c.body), c.header, c.status, c.says)
	}
	d.wantRaw("bob", "PUT", "/words", nil, nil, 409, "<Code>BucketAlreadyExists</Code><Message>The requested bucket name is not available. The bucket namespace is shared by all users of the system. Please select a different name and try again.</Message>")
}

// What is wrong with signatures, in S3's words.
func TestSignatureErrorWords(t *testing.T) {
	d := openDoor(t, Config{Region: "us-east-1"})
	d.bucket("alice", "words")
	now := time.Now().UTC()
	day, stamp := now.Format("20060102"), now.Format("20060102T150405Z")
	zeros := strings.Repeat("0", 64)
	header := func(credential, more string) map[string]string {
		return map[string]string{"Authorization": "AWS4-HMAC-SHA256 Credential=" + credential + ", SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature=" + zeros + more,
			"X-Amz-Date": stamp, "X-Amz-Content-Sha256": "UNSIGNED-PAYLOAD"}
	}
	with := func(h map[string]string, name, value string) map[string]string { h[name] = value; return h }
	query := func(changed ...string) string {
		q := url.Values{"X-Amz-Algorithm": {"AWS4-HMAC-SHA256"}, "X-Amz-Credential": {"KEYalice/" + day + "/us-east-1/s3/aws4_request"}, "X-Amz-Date": {stamp},
			"X-Amz-Expires": {"60"}, "X-Amz-SignedHeaders": {"host"}, "X-Amz-Signature": {zeros}}
		for i := 0; i < len(changed); i += 2 {
			q.Set(changed[i], changed[i+1])
		}
		return "/words?" + q.Encode()
	}
	const good = "/us-east-1/s3/aws4_request"
	const malformed, credential = "<Code>AuthorizationHeaderMalformed</Code><Message>The authorization header is malformed; ", "<Code>AuthorizationQueryParametersError</Code><Message>Error parsing the X-Amz-Credential parameter; "
	for _, c := range []struct {
		target string
		header map[string]string
		status int
		says   string
	}{
		{"/words", header("KEYalice/"+day+good, ""), 403, "<Code>SignatureDoesNotMatch</Code><Message>The request signature we calculated does not match the signature you provided. Check your key and signing method.</Message><AWSAccessKeyId>KEYalice</AWSAccessKeyId><StringToSign>AWS4-HMAC-SHA256&#xa;" + stamp + "&#xa;" + day + good},
		{"/words", header("KEYalice/"+day+good, ""), 403, "<SignatureProvided>" + zeros + "</SignatureProvided><StringToSignBytes>41 57 53 34 2d"},
		{"/words", header("KEYalice/"+day+good, ""), 403, "<CanonicalRequest>GET&#xa;/words&#xa;&#xa;host:"},
		{"/words", header("KEYnobody/"+day+good, ""), 403, "<Code>InvalidAccessKeyId</Code><Message>The AWS Access Key Id you provided does not exist in our records.</Message><AWSAccessKeyId>KEYnobody</AWSAccessKeyId>"},
		{"/words", header("KEYalice", ""), 400, malformed + "the Credential is mal-formed; expecting &quot;&lt;YOUR-AKID&gt;/YYYYMMDD/REGION/SERVICE/aws4_request&quot;."},
		{"/words", header("KEYalice/"+day+"/us-east-1/ec2/aws4_request", ""), 400, malformed + "incorrect service &quot;ec2&quot;. This endpoint belongs to &quot;s3&quot;."},
		{"/words", header("KEYalice/"+day+"/us-east-1/s3/aws", ""), 400, malformed + "incorrect terminal &quot;aws&quot;. This endpoint uses &quot;aws4_request&quot;."},
		{"/words", header("KEYalice/today"+good, ""), 400, malformed + "incorrect date format &quot;today&quot;. This date in the credential must be in the format &quot;yyyyMMdd&quot;."},
		{"/words", header("KEYalice/"+day+"/eu-west-1/s3/aws4_request", ""), 400, malformed + "the region 'eu-west-1' is wrong; expecting 'us-east-1'</Message><Region>us-east-1</Region>"},
		{"/words", header("KEYalice/20200101"+good, ""), 400, malformed + "Invalid credential date &quot;20200101&quot;. This date is not the same as X-Amz-Date: &quot;" + day + "&quot;."},
		{"/words", header("KEYalice/"+day+good, ", nonsense"), 400, malformed + "the authorization component &quot;nonsense&quot; is malformed."},
		{"/words", map[string]string{"Authorization": "AWS4-HMAC-SHA256 Credential=a"}, 400, malformed + "the authorization header requires three components: Credential, SignedHeaders, and Signature."},
		{"/words", with(header("KEYalice/"+day+good, ""), "X-Amz-Meta-B", "b"), 403, "<Code>AccessDenied</Code><Message>There were headers present in the request which were not signed</Message><HeadersNotSigned>x-amz-meta-b</HeadersNotSigned>"},
		{"/words", with(header("KEYalice/20200101"+good, ""), "X-Amz-Date", "20200101T000000Z"), 403, "<Code>RequestTimeTooSkewed</Code><Message>The difference between the request time and the current time is too large.</Message><RequestTime>20200101T000000Z</RequestTime><ServerTime>"},
		{"/words", with(header("KEYalice/20200101"+good, ""), "X-Amz-Date", "20200101T000000Z"), 403, "<MaxAllowedSkewMilliseconds>900000</MaxAllowedSkewMilliseconds>"},
		{"/words", map[string]string{"Authorization": "Bearer x"}, 400, "<Code>InvalidArgument</Code><Message>Unsupported Authorization Type</Message><ArgumentName>Authorization</ArgumentName><ArgumentValue>Bearer x</ArgumentValue>"},
		{query(), map[string]string{"Authorization": "Bearer x"}, 400, "<Message>Only one auth mechanism allowed; only the X-Amz-Algorithm query parameter, Signature query string parameter or the Authorization header should be specified</Message><ArgumentName>Authorization</ArgumentName>"},
		{"/words", map[string]string{"X-Amz-Security-Token": "x"}, 400, "<Code>InvalidToken</Code><Message>The provided token is malformed or otherwise invalid.</Message>"},
		{query("X-Amz-Credential", ""), nil, 400, "<Message>Query-string authentication version 4 requires the X-Amz-Algorithm, X-Amz-Credential, X-Amz-Signature, X-Amz-Date, X-Amz-SignedHeaders, and X-Amz-Expires parameters.</Message>"},
		{query("X-Amz-Algorithm", "x"), nil, 400, "<Message>X-Amz-Algorithm only supports &quot;AWS4-HMAC-SHA256&quot;</Message>"},
		{query("X-Amz-Credential", "x"), nil, 400, credential + "the Credential is mal-formed;"},
		{query("X-Amz-Credential", "KEYalice/"+day+"/x/s3/aws4_request"), nil, 400, credential + "the region 'x' is wrong; expecting 'us-east-1'"},
		{query("X-Amz-Date", "x"), nil, 400, "<Message>X-Amz-Date must be in the ISO8601 Long Format &quot;yyyyMMdd'T'HHmmss'Z'&quot;</Message>"},
		{query("X-Amz-Date", "20200101T000000Z"), nil, 400, "<Message>Invalid credential date &quot;" + day + "&quot;. This date is not the same as X-Amz-Date: &quot;20200101&quot;.</Message>"},
		{query("X-Amz-Expires", "x"), nil, 400, "<Message>X-Amz-Expires should be a number</Message>"},
		{query("X-Amz-Expires", "-1"), nil, 400, "<Message>X-Amz-Expires must be non-negative</Message>"},
		{query("X-Amz-Expires", "604801"), nil, 400, "<Message>X-Amz-Expires must be less than a week (in seconds); that is, the given X-Amz-Expires must be less than 604800 seconds</Message>"},
		{query("X-Amz-Expires", "0"), nil, 403, "<Code>AccessDenied</Code><Message>Request has expired</Message><X-Amz-Expires>0</X-Amz-Expires><Expires>" + now.Format(time.RFC3339) + "</Expires><ServerTime>"},
	} {
		r := d.request("GET", c.target, nil, c.header)
		if res, got := d.do(r); res.StatusCode != c.status || !strings.Contains(got, c.says) {
			t.Errorf("GET %s %v: %d %s; want %d %s", c.target, c.header, res.StatusCode, got, c.status, c.says)
		}
	}
	fields := func(changed ...string) [][2]string {
		f := [][2]string{{"key", "k"}}
		all := []string{"policy", "e30=", "x-amz-signature", zeros, "x-amz-algorithm", "AWS4-HMAC-SHA256", "x-amz-credential", "KEYalice/" + day + good, "x-amz-date", stamp}
		for i := 0; i < len(all); i += 2 {
			v := all[i+1]
			if all[i] == changed[0] {
				v = changed[1]
			}
			f = append(f, [2]string{all[i], v})
		}
		return f
	}
	for _, c := range []struct{ field, value, says string }{
		{"policy", "", "<Message>Bucket POST must contain a field named 'policy'.  If it is specified, please check the order of the fields.</Message><ArgumentName>policy</ArgumentName><ArgumentValue></ArgumentValue>"},
		{"x-amz-signature", "", "'X-Amz-Signature'"}, {"x-amz-date", "", "'X-Amz-Date'"},
		{"x-amz-algorithm", "x", "<Message>Only AWS4-HMAC-SHA256 is supported</Message><ArgumentName>X-Amz-Algorithm</ArgumentName><ArgumentValue>x</ArgumentValue>"},
		{"x-amz-date", "x", "<Message>X-Amz-Date must be formated via ISO8601 Long format</Message><ArgumentName>X-Amz-Date</ArgumentName>"},
		{"x-amz-credential", "x", "<Message>the Credential is mal-formed; expecting &quot;&lt;YOUR-AKID&gt;/YYYYMMDD/REGION/SERVICE/aws4_request&quot;.</Message><ArgumentName>X-Amz-Credential</ArgumentName><ArgumentValue>x</ArgumentValue>"},
		{"x-amz-credential", "a/" + day + "/eu/s3/aws4_request", "<Message>the region 'eu' is wrong; expecting 'us-east-1'</Message>"},
	} {
		kind, body := form(fields(c.field, c.value), "x")
		d.wantRaw("", http.MethodPost, "/words", body, map[string]string{"Content-Type": kind}, 400, c.says)
	}
}
