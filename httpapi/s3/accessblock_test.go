package s3

import "testing"

// What is public already gives nothing, and nothing becomes public, by whatever
// way an ACL comes; what is granted by name stays.
func TestPublicAccessBlock(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "block")
	bob := "id=" + d.userID("bob")
	d.wantRaw("alice", "PUT", "/block?acl", nil, map[string]string{"X-Amz-Acl": "public-read-write"}, 200, "")
	d.wantRaw("alice", "PUT", "/block/open", []byte("v"), map[string]string{"X-Amz-Acl": "public-read"}, 200, "")
	d.wantRaw("alice", "PUT", "/block/users", []byte("v"), map[string]string{"X-Amz-Acl": "authenticated-read"}, 200, "")
	d.wantRaw("alice", "PUT", "/block/bobs", []byte("v"), map[string]string{"X-Amz-Grant-Read": bob}, 200, "")
	set := func(name string) {
		t.Helper()
		d.wantRaw("alice", "PUT", "/block?publicAccessBlock", []byte("<PublicAccessBlockConfiguration><"+name+">true</"+name+"></PublicAccessBlockConfiguration>"), nil, 200, "")
		d.wantRaw("alice", "GET", "/block?publicAccessBlock", nil, nil, 200, "<"+name+">true</"+name+">")
	}
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		d.wantRaw("bob", method, "/block?publicAccessBlock", []byte("<PublicAccessBlockConfiguration/>"), nil, 403, "AccessDenied")
	}
	reads := func(status int) {
		t.Helper()
		d.wantRaw("", "GET", "/block/open", nil, nil, status, "")
		d.wantRaw("", "GET", "/block", nil, nil, status, "")
		d.wantRaw("", "PUT", "/block/new", []byte("v"), nil, status, "")
		d.wantRaw("bob", "GET", "/block/users", nil, nil, status, "")
		d.wantRaw("bob", "GET", "/block/bobs", nil, nil, 200, "v")
		for _, who := range []string{"alice", "root"} {
			d.wantRaw(who, "GET", "/block/open", nil, nil, 200, "v")
		}
	}
	reads(200)
	set("IgnorePublicAcls")
	reads(403)
	set("BlockPublicPolicy")
	reads(200)
	set("BlockPublicAcls")
	reads(200)
	for _, who := range []string{"alice", "root"} {
		for _, acl := range []string{"public-read", "authenticated-read", "public-read-write"} {
			h := map[string]string{"X-Amz-Acl": acl}
			d.wantRaw(who, "PUT", "/block?acl", nil, h, 403, "AccessDenied")
			d.wantRaw(who, "PUT", "/block/open?acl", nil, h, 403, "AccessDenied")
			d.wantRaw(who, "PUT", "/block/put", []byte("v"), h, 403, "AccessDenied")
			d.wantRaw(who, "POST", "/block/up?uploads", nil, h, 403, "AccessDenied")
			h["X-Amz-Copy-Source"] = "/block/open"
			d.wantRaw(who, "PUT", "/block/copy", nil, h, 403, "AccessDenied")
		}
		d.wantRaw(who, "PUT", "/block/named", []byte("v"), map[string]string{"X-Amz-Grant-Read": bob}, 200, "")
		d.wantRaw(who, "PUT", "/block/named?acl", nil, map[string]string{"X-Amz-Acl": "private"}, 200, "")
	}
	d.wantRaw("alice", "GET", "/block/put", nil, nil, 404, "NoSuchKey")
	d.wantRaw("alice", "PUT", "/block?publicAccessBlock", []byte("<PublicAccessBlockConfiguration><BlockPublicAcls>perhaps</BlockPublicAcls></PublicAccessBlockConfiguration>"), nil, 400, "MalformedXML")
	d.wantRaw("alice", "DELETE", "/block?publicAccessBlock", nil, nil, 204, "")
	d.wantRaw("alice", "GET", "/block?publicAccessBlock", nil, nil, 404, "NoSuchPublicAccessBlockConfiguration")
	d.wantRaw("alice", "PUT", "/block/put", []byte("v"), map[string]string{"X-Amz-Acl": "public-read"}, 200, "")
}
