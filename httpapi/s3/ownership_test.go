package s3

import (
	"fmt"
	"strings"
	"testing"
)

func ownershipDoc(name string) []byte {
	return []byte("<OwnershipControls><Rule><ObjectOwnership>" + name + "</ObjectOwnership></Rule></OwnershipControls>")
}

// What S3 answers to ownership controls and to ACLs under them, one answer a line.
func TestOwnershipAnswers(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "own")
	own := func(name string) map[string]string { return map[string]string{"X-Amz-Object-Ownership": name} }
	acl := func(name string) map[string]string { return map[string]string{"X-Amz-Acl": name} }
	both := own("BucketOwnerEnforced")
	both["X-Amz-Acl"] = "public-read"
	for _, c := range []struct {
		who, method, target string
		body                []byte
		header              map[string]string
		status              int
		says                string
	}{
		{"alice", "GET", "/own?ownershipControls", nil, nil, 404, "OwnershipControlsNotFoundError"},
		{"alice", "PUT", "/own?ownershipControls", ownershipDoc("Nobody"), nil, 400, "MalformedXML"},
		{"alice", "PUT", "/own?ownershipControls", []byte("<OwnershipControls/>"), nil, 400, "MalformedXML"},
		{"alice", "PUT", "/own?ownershipControls", nil, nil, 400, "MissingRequestBody"},
		{"bob", "PUT", "/own?ownershipControls", ownershipDoc("ObjectWriter"), nil, 403, "AccessDenied"},
		{"bob", "DELETE", "/own?ownershipControls", nil, nil, 403, "AccessDenied"},
		{"alice", "PUT", "/nowhere?ownershipControls", ownershipDoc("ObjectWriter"), nil, 404, "NoSuchBucket"},
		{"alice", "PUT", "/own?acl", nil, acl("public-read"), 200, ""},
		{"alice", "PUT", "/own?ownershipControls", ownershipDoc("BucketOwnerEnforced"), nil, 400, "<Code>InvalidBucketAclWithObjectOwnership</Code><Message>Bucket cannot have ACLs set with ObjectOwnership's BucketOwnerEnforced setting</Message>"},
		{"alice", "PUT", "/own?acl", nil, acl("private"), 200, ""},
		{"alice", "PUT", "/own?ownershipControls", ownershipDoc("BucketOwnerEnforced"), nil, 200, ""},
		{"alice", "GET", "/own?ownershipControls", nil, nil, 200, "<OwnershipControls xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Rule><ObjectOwnership>BucketOwnerEnforced</ObjectOwnership></Rule></OwnershipControls>"},
		{"alice", "PUT", "/own?acl", nil, acl("private"), 400, "<Code>AccessControlListNotSupported</Code><Message>The bucket does not allow ACLs</Message>"},
		{"root", "PUT", "/own?acl", nil, acl("public-read"), 400, "AccessControlListNotSupported"},
		{"alice", "PUT", "/own/k", []byte("v"), nil, 200, ""},
		{"alice", "PUT", "/own/k", []byte("v"), acl("bucket-owner-full-control"), 200, ""},
		{"alice", "PUT", "/own/k", []byte("v"), acl("private"), 400, "AccessControlListNotSupported"},
		{"alice", "PUT", "/own/k", []byte("v"), acl("public-read"), 400, "AccessControlListNotSupported"},
		{"alice", "PUT", "/own/k", []byte("v"), map[string]string{"X-Amz-Grant-Read": "id=" + d.userID("bob")}, 400, "AccessControlListNotSupported"},
		{"alice", "POST", "/own/k?uploads", nil, acl("public-read"), 400, "AccessControlListNotSupported"},
		{"alice", "PUT", "/own/k?acl", nil, acl("public-read"), 400, "AccessControlListNotSupported"},
		{"alice", "GET", "/own/k?acl", nil, nil, 200, "FULL_CONTROL"},
		{"alice", "GET", "/own?acl", nil, nil, 200, "FULL_CONTROL"},
		{"alice", "DELETE", "/own?ownershipControls", nil, nil, 204, ""},
		{"alice", "PUT", "/own/k?acl", nil, acl("public-read"), 200, ""},
		{"alice", "PUT", "/made", nil, own("BucketOwnerPreferred"), 200, ""},
		{"alice", "GET", "/made?ownershipControls", nil, nil, 200, "BucketOwnerPreferred"},
		{"alice", "PUT", "/wrong", nil, own("Everybody"), 400, "<ArgumentName>x-amz-object-ownership</ArgumentName>"},
		{"alice", "PUT", "/wrong", nil, both, 400, "InvalidBucketAclWithObjectOwnership"},
		{"alice", "HEAD", "/wrong", nil, nil, 404, ""},
		{"alice", "PUT", "/right", nil, own("BucketOwnerEnforced"), 200, ""},
		{"alice", "PUT", "/right/k", []byte("v"), acl("public-read"), 400, "AccessControlListNotSupported"},
	} {
		d.wantRaw(c.who, c.method, c.target, c.body, c.header, c.status, c.says)
	}
}

// Who owns what bob writes into alice's bucket, by every way that makes an object.
func TestOwnershipOfObjects(t *testing.T) {
	const full = "bucket-owner-full-control"
	for _, c := range []struct{ ownership, acl, owner string }{
		{"", "", "bob"}, {"ObjectWriter", "", "bob"}, {"ObjectWriter", full, "bob"},
		{"BucketOwnerPreferred", "", "bob"}, {"BucketOwnerPreferred", "bucket-owner-read", "bob"}, {"BucketOwnerPreferred", full, "alice"},
		{"BucketOwnerEnforced", "", "alice"}, {"BucketOwnerEnforced", full, "alice"},
	} {
		t.Run(c.ownership+" "+c.acl, func(t *testing.T) {
			d := openDoor(t, Config{})
			d.bucket("alice", "own")
			policy := `{"Statement":{"Effect":"Allow","Principal":{"AWS":"` + d.userID("bob") + `"},"Action":"s3:Put*","Resource":"arn:aws:s3:::own/*"}}`
			d.wantRaw("alice", "PUT", "/own?policy", []byte(policy), nil, 204, "")
			d.wantRaw("alice", "PUT", "/own/over", []byte("alice's"), nil, 200, "")
			if c.ownership != "" {
				d.wantRaw("alice", "PUT", "/own?ownershipControls", ownershipDoc(c.ownership), nil, 200, "")
			}
			d.bucket("bob", "bobs")
			d.wantRaw("bob", "PUT", "/bobs/src", []byte("v"), nil, 200, "")
			header := func(more ...string) map[string]string {
				h := map[string]string{}
				if c.acl != "" {
					h["X-Amz-Acl"] = c.acl
				}
				for i := 0; i < len(more); i += 2 {
					h[more[i]] = more[i+1]
				}
				return h
			}
			d.wantRaw("bob", "PUT", "/own/over", []byte("v"), header(), 200, "")
			d.wantRaw("bob", "PUT", "/own/dir/put", []byte("v"), header(), 200, "")
			d.wantRaw("bob", "PUT", "/own/marker/", nil, header(), 200, "")
			d.wantRaw("bob", "PUT", "/own/copy", nil, header("X-Amz-Copy-Source", "/bobs/src"), 200, "")
			_, page := d.wantRaw("bob", "POST", "/own/parts?uploads", nil, header(), 200, "")
			id := between(page, "<UploadId>", "</UploadId>")
			res, _ := d.wantRaw("bob", "PUT", "/own/parts?partNumber=1&uploadId="+id, []byte("v"), nil, 200, "")
			d.wantRaw("bob", "POST", "/own/parts?uploadId="+id, []byte("<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>"+res.Header.Get("ETag")+"</ETag></Part></CompleteMultipartUpload>"), nil, 200, "")
			for _, key := range []string{"over", "dir/put", "copy", "parts"} {
				_, page := d.wantRaw("root", "GET", "/own/"+key+"?acl", nil, nil, 200, "")
				if !strings.Contains(page, "<Owner><ID>"+d.userID(c.owner)+"</ID>") {
					t.Errorf("%s: %s", key, page)
				}
				status := map[string]int{"bob": 200, "alice": 403}[c.owner]
				d.wantRaw("bob", "GET", "/own/"+key, nil, nil, status, "")
				d.wantRaw("bob", "GET", "/own/"+key+"?acl", nil, nil, status, "")
			}
			_, page = d.wantRaw("alice", "GET", "/own?list-type=2&fetch-owner=true&prefix=dir/", nil, nil, 200, "")
			if !strings.Contains(page, "<ID>"+d.userID(c.owner)+"</ID>") {
				t.Error(page)
			}
		})
	}
}

// A bucket that owns everything owns what was there, as long as it says so.
func TestOwnershipOfOldObjects(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "own")
	d.wantRaw("alice", "PUT", "/own?acl", nil, map[string]string{"X-Amz-Grant-Write": "id=" + d.userID("bob")}, 200, "")
	d.wantRaw("bob", "PUT", "/own/bobs", []byte("v"), nil, 200, "")
	d.wantRaw("alice", "PUT", "/own/open", []byte("v"), map[string]string{"X-Amz-Acl": "public-read"}, 200, "")
	d.wantRaw("alice", "PUT", "/own?acl", nil, map[string]string{"X-Amz-Acl": "private"}, 200, "")
	state := func(bob, stranger int, owner string) {
		t.Helper()
		d.wantRaw("bob", "GET", "/own/bobs", nil, nil, bob, "")
		d.wantRaw("", "GET", "/own/open", nil, nil, stranger, "")
		d.wantRaw("alice", "GET", "/own/bobs?acl", nil, nil, map[string]int{"alice": 200, "bob": 200}[owner], "<Owner><ID>"+d.userID(owner)+"</ID>")
		d.wantRaw("alice", "GET", "/own?prefix=bobs", nil, nil, 200, "<ID>"+d.userID(owner)+"</ID>")
	}
	state(200, 200, "bob")
	d.wantRaw("alice", "PUT", "/own?ownershipControls", ownershipDoc("BucketOwnerEnforced"), nil, 200, "")
	state(403, 403, "alice")
	d.wantRaw("alice", "PUT", "/own?ownershipControls", ownershipDoc("ObjectWriter"), nil, 200, "")
	state(200, 200, "bob")
}

// An upload with an ACL that its bucket took when it began is completed after ACLs were
// disabled, or public ones blocked. A block is one of what the ACL gives as long as it is
// set; an object that is made without ACLs has none.
func TestOwnershipOfOldUploads(t *testing.T) {
	for _, c := range []struct {
		name, target, set, unset string
		then                     int
	}{
		{"enforced", "/own?ownershipControls", string(ownershipDoc("BucketOwnerEnforced")), string(ownershipDoc("ObjectWriter")), 403},
		{"block", "/own?publicAccessBlock", accessBlockDoc(true), accessBlockDoc(false), 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := openDoor(t, Config{})
			d.bucket("alice", "own")
			_, page := d.wantRaw("alice", "POST", "/own/k?uploads", nil, map[string]string{"X-Amz-Acl": "public-read"}, 200, "")
			id := between(page, "<UploadId>", "</UploadId>")
			d.wantRaw("alice", "PUT", c.target, []byte(c.set), nil, 200, "")
			res, _ := d.wantRaw("alice", "PUT", "/own/k?partNumber=1&uploadId="+id, []byte("v"), nil, 200, "")
			d.wantRaw("alice", "POST", "/own/k?uploadId="+id, []byte("<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>"+res.Header.Get("ETag")+"</ETag></Part></CompleteMultipartUpload>"), nil, 200, "")
			d.wantRaw("", "GET", "/own/k", nil, nil, 403, "")
			d.wantRaw("alice", "GET", "/own/k", nil, nil, 200, "v")
			d.wantRaw("alice", "PUT", c.target, []byte(c.unset), nil, 200, "")
			d.wantRaw("", "GET", "/own/k", nil, nil, c.then, "")
		})
	}
}

func accessBlockDoc(on bool) string {
	doc := "<PublicAccessBlockConfiguration>"
	for _, name := range []string{"BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets"} {
		doc += fmt.Sprintf("<%s>%t</%s>", name, on, name)
	}
	return doc + "</PublicAccessBlockConfiguration>"
}

// between returns what stands in s between two words.
func between(s, before, after string) string {
	_, s, _ = strings.Cut(s, before)
	s, _, _ = strings.Cut(s, after)
	return s
}
