package s3

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"ogw/vfs"
)

// What S3 answers where nothing is set, one answer a line.
func TestNotConfigured(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "plain")
	d.wantRaw("alice", "PUT", "/plain/k", []byte("v"), nil, 200, "")
	for _, c := range []struct {
		query  string
		status int
		says   string
	}{
		{"versioning", 200, `<VersioningConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"></VersioningConfiguration>`},
		{"policy", 404, "<Code>NoSuchBucketPolicy</Code><Message>The bucket policy does not exist</Message><BucketName>plain</BucketName>"},
		{"policyStatus", 404, "<Code>NoSuchBucketPolicy</Code>"},
		{"lifecycle", 404, "<Code>NoSuchLifecycleConfiguration</Code><Message>The lifecycle configuration does not exist</Message>"},
		{"cors", 404, "<Code>NoSuchCORSConfiguration</Code><Message>The CORS configuration does not exist</Message>"},
		{"encryption", 404, "<Code>ServerSideEncryptionConfigurationNotFoundError</Code><Message>The server side encryption configuration was not found</Message>"},
		{"tagging", 404, "<Code>NoSuchTagSet</Code><Message>The TagSet does not exist</Message>"},
		{"object-lock", 404, "<Code>ObjectLockConfigurationNotFoundError</Code><Message>Object Lock configuration does not exist for this bucket</Message>"},
		{"requestPayment", 200, "<Payer>BucketOwner</Payer>"},
		{"replication", 404, "<Code>ReplicationConfigurationNotFoundError</Code><Message>The replication configuration was not found</Message>"},
		{"website", 404, "<Code>NoSuchWebsiteConfiguration</Code><Message>The specified bucket does not have a website configuration</Message>"},
		{"logging", 200, "<BucketLoggingStatus"},
		{"notification", 200, "<NotificationConfiguration"},
		{"accelerate", 200, "<AccelerateConfiguration"},
		{"publicAccessBlock", 404, "<Code>NoSuchPublicAccessBlockConfiguration</Code><Message>The public access block configuration was not found</Message>"},
		{"ownershipControls", 404, "<Code>OwnershipControlsNotFoundError</Code><Message>The bucket ownership controls were not found</Message>"},
	} {
		d.wantRaw("alice", "GET", "/plain?"+c.query, nil, nil, c.status, c.says)
		d.wantRaw("root", "GET", "/plain?"+c.query, nil, nil, c.status, c.says)
		d.wantRaw("bob", "GET", "/plain?"+c.query, nil, nil, 403, "AccessDenied")
		d.wantRaw("", "GET", "/plain?"+c.query, nil, nil, 403, "AccessDenied")
		for _, who := range []string{"alice", "root"} {
			d.wantRaw(who, "GET", "/nowhere?"+c.query, nil, nil, 404, "NoSuchBucket")
		}
	}
	for _, query := range []string{"policy", "lifecycle", "cors", "encryption", "replication", "website", "publicAccessBlock", "ownershipControls", "tagging"} {
		d.wantRaw("alice", "DELETE", "/plain?"+query, nil, nil, 204, "")
		d.wantRaw("bob", "DELETE", "/plain?"+query, nil, nil, 403, "AccessDenied")
		d.wantRaw("root", "DELETE", "/nowhere?"+query, nil, nil, 404, "NoSuchBucket")
	}
	for method, path := range map[string]string{"GET": "/?x-id=ListDirectoryBuckets", "POST": "/WriteGetObjectResponse?x-id=WriteGetObjectResponse"} {
		d.wantRaw("alice", method, path, nil, nil, 501, "NotImplemented")
	}
	for _, query := range []string{"lifecycle", "versioning", "website"} {
		d.wantRaw("alice", "PUT", "/plain?"+query, []byte("<x/>"), nil, 501, "NotImplemented")
	}
	for payer, status := range map[string]int{"BucketOwner": 200, "Nobody": 400} {
		doc := []byte("<RequestPaymentConfiguration><Payer>" + payer + "</Payer></RequestPaymentConfiguration>")
		d.wantRaw("alice", "PUT", "/plain?requestPayment", doc, nil, status, "")
		d.wantRaw("bob", "PUT", "/plain?requestPayment", doc, nil, 403, "AccessDenied")
	}
	d.wantRaw("alice", "GET", "/plain/k?retention", nil, nil, 400, "Bucket is missing Object Lock Configuration")
	d.wantRaw("alice", "GET", "/plain/k?legal-hold", nil, nil, 400, "Bucket is missing Object Lock Configuration")
	d.wantRaw("alice", "GET", "/plain/none?legal-hold", nil, nil, 404, "NoSuchKey")
	d.wantRaw("alice", "HEAD", "/plain", nil, nil, 200, "")
}

// Objects are their only versions.
func TestListObjectVersions(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "ver")
	for _, k := range []string{"a", "b/1", "b/2", "c"} {
		d.wantRaw("alice", "PUT", "/ver/"+k, []byte("v"), nil, 200, "")
	}
	d.wantRaw("alice", "GET", "/ver?versions", nil, nil, 200, "<Version><Key>a</Key><VersionId>null</VersionId><IsLatest>true</IsLatest><LastModified>")
	_, page := d.wantRaw("alice", "GET", "/ver?versions&delimiter=/&max-keys=1", nil, nil, 200, "<NextKeyMarker>a</NextKeyMarker><NextVersionIdMarker>null</NextVersionIdMarker>")
	if strings.Contains(page, "b/") {
		t.Error(page)
	}
	_, page = d.wantRaw("alice", "GET", "/ver?versions&delimiter=/&key-marker=a&version-id-marker=null", nil, nil, 200, "<CommonPrefixes><Prefix>b/</Prefix></CommonPrefixes>")
	if strings.Contains(page, "<Key>a</Key>") || !strings.Contains(page, "<Key>c</Key>") || !strings.Contains(page, "<IsTruncated>false") {
		t.Error(page)
	}
	d.wantRaw("alice", "GET", "/ver?versions&version-id-marker=null", nil, nil, 400, "A version-id marker cannot be specified without a key marker.")
	d.wantRaw("alice", "GET", "/ver?versions&key-marker=a&version-id-marker=x", nil, nil, 400, "Invalid version id specified")
	d.wantRaw("bob", "GET", "/ver?versions", nil, nil, 403, "AccessDenied")
	d.wantRaw("alice", "DELETE", "/ver/a?versionId=null", nil, nil, 204, "")
	d.wantRaw("alice", "GET", "/ver/a", nil, nil, 404, "NoSuchKey")
}

// Buckets by pages, by prefix and by region; administrators see all.
func TestListBucketsPages(t *testing.T) {
	d := openDoor(t, Config{Region: "eu-central-1"})
	ask := func(user, query string, status int, says string) string {
		t.Helper()
		r := d.request("GET", "/"+query, nil, nil)
		d.signIn("eu-central-1", r, user)
		res, body := d.do(r)
		if res.StatusCode != status || !strings.Contains(body, says) {
			t.Errorf("%s: %d %s; want %d %s", query, res.StatusCode, body, status, says)
		}
		return body
	}
	for _, name := range []string{"a-one", "a-two", "b-one"} {
		if _, err := d.fs.CreateBucket(bg, name, vfs.NewCred(1001, 100)); err != nil {
			t.Fatal(err)
		}
	}
	first := ask("alice", "?max-buckets=2", 200, "<Name>a-two</Name>")
	token := first[strings.Index(first, "<ContinuationToken>")+len("<ContinuationToken>") : strings.Index(first, "</ContinuationToken>")]
	if strings.Contains(first, "b-one") || strings.Contains(ask("alice", "?max-buckets=2&continuation-token="+url.QueryEscape(token), 200, "<Name>b-one</Name>"), "ContinuationToken") {
		t.Error(first)
	}
	if body := ask("alice", "?prefix=a-", 200, "<Prefix>a-</Prefix>"); strings.Contains(body, "b-one") {
		t.Error(body)
	}
	ask("alice", "?bucket-region=eu-central-1", 200, "<BucketRegion>eu-central-1</BucketRegion>")
	ask("alice", "?bucket-region=us-east-1", 200, "<Buckets></Buckets>")
	ask("bob", "", 200, "<Buckets></Buckets>")
	ask("root", "", 200, "<Name>b-one</Name>")
	for _, n := range []string{"0", "10001", "x"} {
		ask("alice", "?max-buckets="+n, 400, "<Message>Argument max-buckets must be an integer between 1 and 10000.</Message><ArgumentName>max-buckets</ArgumentName><ArgumentValue>"+n+"</ArgumentValue>")
	}
}

func TestBucketTags(t *testing.T) {
	d := openDoor(t, Config{})
	tags := func(root string, n int) []byte {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "<Tag><Key>k%d</Key><Value>v&amp;%d</Value></Tag>", i, i)
		}
		return []byte(fmt.Sprintf(root, b.String()))
	}
	const create, set = "<CreateBucketConfiguration><Tags>%s</Tags></CreateBucketConfiguration>", "<Tagging><TagSet>%s</TagSet></Tagging>"
	d.wantRaw("alice", "PUT", "/tagged", tags(create, 51), nil, 400, "InvalidTag")
	d.wantRaw("alice", "PUT", "/tagged", tags(create, 2), nil, 200, "")
	d.wantRaw("alice", "GET", "/tagged?tagging", nil, nil, 200, "<Tag><Key>k1</Key><Value>v&amp;1</Value></Tag>")
	d.wantRaw("alice", "PUT", "/tagged?tagging", tags(set, 51), nil, 400, "InvalidTag")
	d.wantRaw("bob", "PUT", "/tagged?tagging", tags(set, 1), nil, 403, "AccessDenied")
	d.wantRaw("alice", "PUT", "/tagged?tagging", tags(set, 50), nil, 204, "")
	d.wantRaw("alice", "GET", "/tagged?tagging", nil, nil, 200, "k49")
	d.wantRaw("alice", "DELETE", "/tagged?tagging", nil, nil, 204, "")
	d.wantRaw("alice", "GET", "/tagged?tagging", nil, nil, 404, "NoSuchTagSet")
}

// TestSystemTags: names that begin with "aws:" are Amazon's.
func TestSystemTags(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "tagged")
	d.wantRaw("alice", "PUT", "/tagged/k", []byte("v"), nil, 200, "")
	const tag = "<Tag><Key>AWS:x</Key><Value>1</Value></Tag>"
	bucket, object := message("System tags cannot be added/updated by requester"), message("Your TagKey cannot be prefixed with aws:", "TagKey", "AWS:x")
	set := []byte("<Tagging><TagSet>" + tag + "</TagSet></Tagging>")
	d.wantRaw("alice", "PUT", "/tagged2", []byte("<CreateBucketConfiguration><Tags>"+tag+"</Tags></CreateBucketConfiguration>"), nil, 400, "<Code>InvalidTag</Code>"+bucket)
	d.wantRaw("alice", "PUT", "/tagged?tagging", set, nil, 400, "<Code>InvalidTag</Code>"+bucket)
	d.wantRaw("alice", "PUT", "/tagged/k?tagging", set, nil, 400, "<Code>InvalidTag</Code>"+object)
	d.wantRaw("alice", "PUT", "/tagged/k", []byte("new"), one("X-Amz-Tagging", "AWS:x=1"), 400, "<Code>InvalidTag</Code>"+object)
	d.wantRaw("alice", "GET", "/tagged/k", nil, nil, 200, "v")
	d.wantRaw("alice", "GET", "/tagged2", nil, nil, 404, "NoSuchBucket")
}

func TestStorageClasses(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "class")
	for _, class := range storageClasses {
		h := map[string]string{"X-Amz-Storage-Class": class}
		d.wantRaw("alice", "PUT", "/class/k", []byte("v"), h, 200, "")
		shown, listed := class, class
		if class == "GLACIER" || class == "DEEP_ARCHIVE" { // clients refuse to read those
			shown, listed = "", "STANDARD"
		}
		if res, _ := d.raw("alice", "HEAD", "/class/k", nil, nil); res.Header.Get("X-Amz-Storage-Class") != shown {
			t.Errorf("%s: %v", class, res.Header)
		}
		d.wantRaw("alice", "GET", "/class/k", nil, nil, 200, "v")
		for _, list := range []string{"", "?list-type=2", "?versions"} {
			d.wantRaw("alice", "GET", "/class"+list, nil, nil, 200, "<StorageClass>"+listed+"</StorageClass>")
		}
		d.wantRaw("alice", "POST", "/class/up?uploads", nil, h, 200, "")
		d.wantRaw("alice", "GET", "/class?uploads", nil, nil, 200, "<StorageClass>"+listed+"</StorageClass>")
	}
	d.wantRaw("alice", "PUT", "/class/k", []byte("v"), map[string]string{"X-Amz-Storage-Class": "STANDARD"}, 200, "")
	d.wantRaw("alice", "GET", "/class", nil, nil, 200, "<StorageClass>STANDARD</StorageClass>")
	d.wantRaw("alice", "PUT", "/class/k", []byte("v"), map[string]string{"X-Amz-Storage-Class": "SHELF"}, 400, "<Code>InvalidStorageClass</Code>")
}

// TestEmptiedObject: what described the old bytes of an object does not come with those
// that a mount writes behind a new end of 0.
func TestEmptiedObject(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "emptied")
	for _, body := range []string{"old bytes", ""} {
		d.wantRaw("alice", "PUT", "/emptied/k.html", []byte(body), map[string]string{
			"Content-Type": "text/css", "Content-Encoding": "gzip", "Cache-Control": "no-store", "X-Amz-Meta-A": "b", "X-Amz-Tagging": "t=1"}, 200, "")
		a, err := d.fs.Resolve(bg, vfs.Root, "/emptied/k.html", true)
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range []int64{3, 0} {
			if _, err := d.fs.SetAttr(bg, vfs.Root, a.Ino, vfs.SetAttr{Size: &size}); err != nil {
				t.Fatal(err)
			}
			want := []string{"text/css", "gzip"}
			if size == 0 {
				want = []string{"text/html; charset=utf-8", ""}
			}
			res, _ := d.wantRaw("alice", "HEAD", "/emptied/k.html", nil, nil, 200, "")
			h := res.Header
			if got := []string{h.Get("Content-Type"), h.Get("Content-Encoding")}; !slices.Equal(got, want) {
				t.Errorf("%d bytes: %q, want %q", size, got, want)
			}
			if h.Get("Cache-Control") != "no-store" || h.Get("X-Amz-Meta-A") != "b" || h.Get("X-Amz-Tagging-Count") != "1" {
				t.Error(h)
			}
		}
	}
}

// TestListsOfNoText: a key that is not UTF-8, which no marker can be, hides none that is.
func TestListsOfNoText(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "text")
	keys := []string{"%E9t", "%EA%B0%80", "dir%FF/k", "dir/%FF", "dir/k", "%FF"}
	for _, k := range keys {
		d.wantRaw("alice", "PUT", "/text/"+k, nil, nil, 200, "")
	}
	element := func(page, name string) string {
		_, rest, _ := strings.Cut(page, "<"+name+">")
		v, _, _ := strings.Cut(rest, "</"+name+">")
		return v
	}
	paged := func(query, marker, next string, decode func(string) string) (all []string) {
		t.Helper()
		for at := ""; len(all) <= len(keys); {
			_, page := d.wantRaw("alice", "GET", "/text?max-keys=1"+query+at, nil, nil, 200, "")
			if k := element(page, "Key") + element(page, "CommonPrefixes"); k != "" {
				all = append(all, decode(k))
			}
			if element(page, "IsTruncated") != "true" {
				return all
			}
			n := element(page, next)
			if n == "" {
				n = element(page, "Key")
			}
			at = "&" + marker + "=" + url.QueryEscape(decode(n))
		}
		t.Fatalf("%s: no end: %q", query, all)
		return nil
	}
	asIs := func(s string) string { return s }
	plain := func(s string) string {
		s, err := url.QueryUnescape(s)
		if err != nil {
			t.Error(err)
		}
		return s
	}
	for query, names := range map[string][2]string{"": {"marker", "NextMarker"}, "&versions": {"key-marker", "NextKeyMarker"}} {
		if got := paged(query, names[0], names[1], asIs); !slices.Equal(got, []string{"dir/k", "\uac00"}) {
			t.Errorf("%s: %q", query, got)
		}
		if got := paged(query+"&delimiter=/", names[0], names[1], asIs); !slices.Equal(got, []string{"<Prefix>dir/</Prefix>", "\uac00"}) {
			t.Errorf("%s, delimiter: %q", query, got)
		}
		if got := paged(query+"&prefix=dir%FF/", names[0], names[1], asIs); len(got) != 0 {
			t.Errorf("%s, prefix: %q", query, got)
		}
		if got := paged(query+"&encoding-type=url", names[0], names[1], plain); len(got) != len(keys) {
			t.Errorf("%s, encoded: %q", query, got)
		}
	}
	if got := paged("&list-type=2", "continuation-token", "NextContinuationToken", asIs); len(got) != len(keys) {
		t.Errorf("%q", got)
	}
}

// TestListUploadsOfNoText: behind an upload whose key is not UTF-8 a list of uploads goes on
// where it ended, neither before nor behind that.
func TestListUploadsOfNoText(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "text")
	one := func(page, name string) string {
		_, rest, _ := strings.Cut(page, "<"+name+">")
		v, _, _ := strings.Cut(rest, "</"+name+">")
		return v
	}
	var ids, roots []string // in the order of a list; those outside of directories
	for _, k := range []string{"%E9t", "%E9t", "%EA%B0%80", "%FF", "a", "dir%FF/k", "dir/%FF", "dir/k", "dir%FF/%FE", "z"} {
		_, page := d.wantRaw("alice", "POST", "/text/"+k+"?uploads", nil, nil, 200, "")
		ids = append(ids, one(page, "UploadId"))
		if !strings.Contains(k, "/") {
			roots = append(roots, one(page, "UploadId"))
		}
	}
	slices.Sort(ids)
	roots = append(roots, "dir/", "dir\uFFFD/")
	slices.Sort(roots)
	for _, x := range []struct {
		query string
		plain func(string) (string, error)
	}{
		{"", func(s string) (string, error) { return s, nil }},
		{"&encoding-type=url", url.QueryUnescape},
	} {
		for delimiter, want := range map[string][]string{"": ids, "&delimiter=/": roots} {
			var got []string
			for at, more := "", true; more; {
				_, page := d.wantRaw("alice", "GET", "/text?uploads&max-uploads=1"+x.query+delimiter+at, nil, nil, 200, "")
				if id := one(page, "UploadId"); id != "" {
					got = append(got, id)
				}
				if _, prefix, ok := strings.Cut(page, "<CommonPrefixes>"); ok {
					prefix, _ = x.plain(one(prefix, "Prefix"))
					got = append(got, strings.ToValidUTF8(prefix, "\uFFFD"))
				}
				next, err := x.plain(one(page, "NextKeyMarker"))
				if more = one(page, "IsTruncated") == "true" && len(got) <= len(ids); err != nil {
					t.Fatal(err)
				}
				at = "&key-marker=" + url.QueryEscape(next) + "&upload-id-marker=" + url.QueryEscape(one(page, "NextUploadIdMarker"))
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("%q: %q, want %q", x.query+delimiter, got, want)
			}
		}
	}
}

// Headers and conditions of S3's reference, one answer a line.
func TestHeaders(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "head")
	d.bucket("bob", "bobs")
	d.wantRaw("alice", "PUT", "/head/k", []byte("1234"), nil, 200, "")
	now := time.Now().UTC()
	date := func(off time.Duration) string { return now.Add(off).Format("Mon, 02 Jan 2006 15:04:05 GMT") }
	res, _ := d.raw("alice", "HEAD", "/head/k", nil, nil)
	modified := res.Header.Get("Last-Modified")
	_, body := d.raw("alice", "POST", "/head/up?uploads", nil, nil)
	upload := body[strings.Index(body, "<UploadId>")+len("<UploadId>") : strings.Index(body, "</UploadId>")]
	for _, c := range []struct {
		method, target, body string
		header               map[string]string
		status               int
		says                 string
	}{
		{"PUT", "/unlocked", "", map[string]string{"X-Amz-Bucket-Object-Lock-Enabled": "false"}, 200, ""},
		{"PUT", "/locked", "", map[string]string{"X-Amz-Bucket-Object-Lock-Enabled": "true"}, 501, "x-amz-bucket-object-lock-enabled"},
		{"PUT", "/written", "", map[string]string{"X-Amz-Object-Ownership": "ObjectWriter"}, 200, ""},
		{"PUT", "/enforced", "", map[string]string{"X-Amz-Object-Ownership": "BucketOwnerEnforced"}, 200, ""},
		{"PUT", "/head/nolock", "v", map[string]string{"X-Amz-Object-Lock-Legal-Hold": "OFF", "X-Amz-Server-Side-Encryption-Bucket-Key-Enabled": "false"}, 200, ""},
		{"PUT", "/head/lock", "v", map[string]string{"X-Amz-Object-Lock-Legal-Hold": "ON"}, 501, "NotImplemented"},
		{"PUT", "/head/md5", "v", map[string]string{"Content-Md5": ""}, 400, "InvalidDigest"},
		{"PUT", "/head/www", "v", map[string]string{"X-Amz-Website-Redirect-Location": "elsewhere"}, 400, "<Code>InvalidRedirectLocation</Code><Message>The website redirect location must have a prefix of 'http://' or 'https://' or '/'."},
		{"PUT", "/head/www", "v", map[string]string{"X-Amz-Website-Redirect-Location": "/" + strings.Repeat("x", 2048)}, 400, "InvalidRedirectLocation"},
		{"PUT", "/head/www", "v", map[string]string{"X-Amz-Website-Redirect-Location": "https://example.com/"}, 200, ""},
		{"PUT", "/head/copy", "", map[string]string{"X-Amz-Copy-Source": "/head/k", "X-Amz-Source-Expected-Bucket-Owner": d.userID("bob")}, 403, "AccessDenied"},
		{"PUT", "/head/copy", "", map[string]string{"X-Amz-Copy-Source": "/head/k", "X-Amz-Source-Expected-Bucket-Owner": d.userID("alice")}, 200, "CopyObjectResult"},
		{"PUT", "/head/up?partNumber=1&uploadId=" + upload, "", map[string]string{"X-Amz-Copy-Source": "/head/k", "X-Amz-Source-Expected-Bucket-Owner": d.userID("bob")}, 403, "AccessDenied"},
		{"DELETE", "/head/k", "", map[string]string{"X-Amz-If-Match-Size": "5"}, 412, "<Condition>x-amz-if-match-size</Condition>"},
		{"DELETE", "/head/k", "", map[string]string{"X-Amz-If-Match-Size": "x"}, 400, "InvalidArgument"},
		{"DELETE", "/head/k", "", map[string]string{"X-Amz-If-Match-Last-Modified-Time": date(-time.Hour)}, 412, "PreconditionFailed"},
		{"DELETE", "/head/k", "", map[string]string{"X-Amz-If-Match-Last-Modified-Time": "yesterday"}, 400, "InvalidArgument"},
		{"POST", "/head?delete", "<Delete><Object><Key>k</Key><Size>5</Size></Object></Delete>", nil, 200, "<Code>PreconditionFailed</Code>"},
		{"POST", "/head?delete", "<Delete><Object><Key>k</Key><LastModifiedTime>" + date(-time.Hour) + "</LastModifiedTime></Object></Delete>", nil, 200, "<Code>PreconditionFailed</Code>"},
		{"GET", "/head/k", "", nil, 200, "1234"},
		{"POST", "/head?delete", "<Delete><Object><Key>copy</Key><Size>4</Size></Object></Delete>", nil, 200, "<Deleted><Key>copy</Key></Deleted>"},
		{"DELETE", "/head/k", "", map[string]string{"X-Amz-If-Match-Size": "4", "X-Amz-If-Match-Last-Modified-Time": modified}, 204, ""},
		{"GET", "/head/k", "", nil, 404, "NoSuchKey"},
		{"DELETE", "/head/up?uploadId=" + upload, "", map[string]string{"X-Amz-If-Match-Initiated-Time": date(-time.Hour)}, 412, "PreconditionFailed"},
		{"DELETE", "/head/up?uploadId=" + upload, "", nil, 204, ""},
		{"OPTIONS", "/head/k", "", nil, 400, "<Code>BadRequest</Code><Message>Insufficient information. Origin request header needed.</Message>"},
		{"OPTIONS", "/head/k", "", map[string]string{"Origin": "https://example.com"}, 400, "Invalid Access-Control-Request-Method: null"},
		{"OPTIONS", "/head/k", "", map[string]string{"Origin": "https://example.com", "Access-Control-Request-Method": "PUT"}, 403, "CORSResponse: CORS is not enabled for this bucket.</Message><Method>PUT</Method><ResourceType>OBJECT</ResourceType>"},
		{"GET", "/head?uploads", "", nil, 200, "<NextKeyMarker></NextKeyMarker><NextUploadIdMarker></NextUploadIdMarker>"},
	} {
		d.wantRaw("alice", c.method, c.target, []byte(c.body), c.header, c.status, c.says)
	}
}
