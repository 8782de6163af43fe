package s3

import (
	"regexp"
	"strings"
	"testing"
)

// shownGrants is what GetBucketAcl or GetObjectAcl returns, as name:permission.
func (d *door) shownGrants(user, target string) string {
	d.t.Helper()
	_, body := d.wantRaw(user, "GET", target+"?acl", nil, nil, 200, "<AccessControlPolicy")
	var all []string
	for _, m := range regexp.MustCompile(`<Grant>.*?(?:<DisplayName>|<URI>.*?/)(\w+)</.*?<Permission>(\w+)<`).FindAllStringSubmatch(body, -1) {
		all = append(all, m[1]+":"+m[2])
	}
	return strings.Join(all, " ")
}

// ACLs are shown as they were put, and what the owner is granted, or not, takes
// no right from the owner.
func TestACLsAreKept(t *testing.T) {
	d := openDoor(t, Config{})
	d.bucket("alice", "hers")
	d.wantRaw("alice", "PUT", "/hers?acl", nil, map[string]string{"X-Amz-Grant-Write": `id=bob`}, 200, "")
	d.wantRaw("alice", "PUT", "/hers/of-alice", []byte("v"), nil, 200, "")
	d.wantRaw("bob", "PUT", "/hers/of-bob", []byte("v"), nil, 200, "")
	alice, bob := d.userID("alice"), d.userID("bob")
	grant := func(who, permission string) string {
		return `<Grant><Grantee xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="CanonicalUser"><ID>` + who + `</ID></Grantee><Permission>` + permission + `</Permission></Grant>`
	}
	for _, c := range []struct {
		who, target, body string
		header            string // name: value
		want              string
	}{
		{"alice", "/hers/of-alice", grant(alice, "READ") + grant(bob, "WRITE_ACP") + grant(alice, "READ_ACP"), "", "alice:READ bob:WRITE_ACP alice:READ_ACP"},
		{"alice", "/hers/of-alice", grant(bob, "READ"), "", "bob:READ"},
		{"alice", "/hers/of-alice", " ", "", ""},
		{"alice", "/hers/of-alice", grant(alice, "FULL_CONTROL"), "", "alice:FULL_CONTROL"},
		{"alice", "/hers/of-alice", "", "X-Amz-Acl: private", "alice:FULL_CONTROL"},
		{"alice", "/hers/of-alice", "", "X-Amz-Acl: public-read", "alice:FULL_CONTROL AllUsers:READ"},
		{"alice", "/hers/of-alice", "", "X-Amz-Acl: authenticated-read", "alice:FULL_CONTROL AuthenticatedUsers:READ"},
		{"alice", "/hers/of-alice", "", "X-Amz-Acl: bucket-owner-read", "alice:FULL_CONTROL"},
		{"alice", "/hers/of-alice", "", "X-Amz-Grant-Read: id=" + bob, "bob:READ"},
		{"alice", "/hers/of-alice", "", "X-Amz-Grant-Full-Control: id=" + alice + ", id=" + bob, "alice:FULL_CONTROL bob:FULL_CONTROL"},
		{"bob", "/hers/of-bob", "", "X-Amz-Acl: bucket-owner-read", "bob:FULL_CONTROL alice:READ"},
		{"bob", "/hers/of-bob", "", "X-Amz-Acl: bucket-owner-full-control", "bob:FULL_CONTROL alice:FULL_CONTROL"},
		{"alice", "/hers", grant(alice, "WRITE_ACP") + grant(bob, "WRITE"), "", "alice:WRITE_ACP bob:WRITE"},
		{"alice", "/hers", "", "X-Amz-Acl: bucket-owner-read", "alice:FULL_CONTROL"},
		{"alice", "/hers", "", "X-Amz-Grant-Write: id=" + bob, "bob:WRITE"},
	} {
		header := map[string]string{}
		if name, v, ok := strings.Cut(c.header, ": "); ok {
			header[name] = v
		}
		var body []byte
		if c.body != "" {
			body = []byte("<AccessControlPolicy><Owner/><AccessControlList>" + c.body + "</AccessControlList></AccessControlPolicy>")
		}
		d.wantRaw(c.who, "PUT", c.target+"?acl", body, header, 200, "")
		if got := d.shownGrants(c.who, c.target); got != c.want {
			t.Errorf("%s %s%s: %q, want %q", c.target, c.body, c.header, got, c.want)
		}
		d.wantRaw("alice", "GET", "/hers/of-alice", nil, nil, 200, "v")
		d.wantRaw("alice", "GET", "/hers/of-bob", nil, nil, 200, "v")
		d.wantRaw("bob", "GET", "/hers/of-bob", nil, nil, 200, "v")
	}
	// They come with the object just as well.
	d.wantRaw("bob", "PUT", "/hers/new", []byte("v"), map[string]string{"X-Amz-Acl": "bucket-owner-full-control"}, 200, "")
	if got := d.shownGrants("alice", "/hers/new"); got != "bob:FULL_CONTROL alice:FULL_CONTROL" {
		t.Error(got)
	}
	d.wantRaw("bob", "PUT", "/hers/new", []byte("v"), map[string]string{"X-Amz-Grant-Read": "id=" + bob}, 200, "")
	if got := d.shownGrants("bob", "/hers/new"); got != "bob:READ" {
		t.Error(got)
	}
	d.wantRaw("alice", "PUT", "/granted", nil, map[string]string{"X-Amz-Grant-Read-Acp": "id=" + bob}, 200, "")
	if got := d.shownGrants("bob", "/granted"); got != "bob:READ_ACP" {
		t.Error(got)
	}
	d.wantRaw("alice", "PUT", "/hers?acl", []byte("<AccessControlPolicy><AccessControlList>"+strings.Repeat(grant(bob, "READ"), 100)+"</AccessControlList></AccessControlPolicy>"), nil, 200, "")
	d.wantRaw("alice", "PUT", "/hers?acl", []byte("<AccessControlPolicy><AccessControlList>"+strings.Repeat(grant(bob, "READ"), 101)+"</AccessControlList></AccessControlPolicy>"), nil, 400, "MalformedACLError")
}
