package adversary

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ogw/httpapi/rest"
	"ogw/integration/testenv"
)

// restUsers lets users in through the REST gateway.
var restUsers = testenv.ServerOptions{REST: "users = true"}

// ownedFile makes dir (mode 0700) and dir/f (mode 0600) in a bucket through a
// mount, as local account uid would.
func ownedFile(t *testing.T, mount, bucket string, uid int) {
	t.Helper()
	dir := filepath.Join(mount, bucket, "dir")
	for _, err := range []error{
		os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "f"), []byte("for its owner"), 0o600),
		os.Chown(filepath.Join(dir, "f"), uid, uid), os.Chown(dir, uid, uid),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestModesDenyAtObjectDoors: a file of mode 0600 below a directory of mode
// 0700, made through a POSIX door, in a bucket that everybody may read.
func TestModesDenyAtObjectDoors(t *testing.T) {
	s := newServer(t, restUsers)
	alice, bob := newPerson(t, s, "alice"), newPerson(t, s, "bob")
	must(t, "bucket")(bob.s3(t, s, "PUT", "/shared", "", "X-Amz-Acl", "public-read-write"))
	mount := s.Mount()
	ownedFile(t, mount, "shared", alice.uid)

	if body := must(t, "the file's owner")(alice.s3(t, s, "GET", "/shared/dir/f", "")); body != "for its owner" {
		t.Errorf("the owner reads %q", body)
	}
	for _, p := range []person{{name: "a stranger"}, bob} {
		what := func(act string) string { return p.name + " " + act }
		refused(t, what("reads"))(p.s3(t, s, "GET", "/shared/dir/f", ""))
		refused(t, what("asks for the size"))(p.s3(t, s, "HEAD", "/shared/dir/f", ""))
		refused(t, what("overwrites"))(p.s3(t, s, "PUT", "/shared/dir/f", "forged"))
		refused(t, what("adds"))(p.s3(t, s, "PUT", "/shared/dir/g", "forged"))
		refused(t, what("deletes"))(p.s3(t, s, "DELETE", "/shared/dir/f", ""))
		if status, body := p.s3(t, s, "POST", "/shared?delete", `<Delete><Object><Key>dir/f</Key></Object></Delete>`); !strings.Contains(body, "AccessDenied") {
			t.Errorf("%s: %d %s", what("deletes many"), status, body)
		}
		if body := must(t, "list")(p.s3(t, s, "GET", "/shared?list-type=2", "")); strings.Contains(body, "dir/") {
			t.Errorf("%s is shown what lies below a directory of mode 0700:\n%s", p.name, body)
		}
		if body := must(t, "list")(p.s3(t, s, "GET", "/shared?list-type=2&delimiter=/", "")); strings.Contains(body, "dir/") {
			t.Errorf("%s is shown a directory of mode 0700:\n%s", p.name, body)
		}
	}
	for _, p := range []person{bob} { // the bucket is his, the directory is not
		refused(t, "bob reads over REST")(p.rest(t, s, "GET", "/shared/dir/f", ""))
		refused(t, "bob overwrites over REST")(p.rest(t, s, "PUT", "/shared/dir/f", "forged"))
		refused(t, "bob deletes over REST")(p.rest(t, s, "DELETE", "/shared/dir/f", ""))
		if _, body := p.rest(t, s, "GET", "/shared/dir/?list", ""); strings.Contains(body, `"f"`) {
			t.Errorf("bob lists the directory over REST: %s", body)
		}
	}
	if data, err := os.ReadFile(filepath.Join(mount, "shared", "dir", "f")); err != nil || string(data) != "for its owner" {
		t.Errorf("the file holds %q, %v", data, err)
	}
}

// TestBucketReadReadsNoObjects: READ on a bucket lists it and no more.
func TestBucketReadReadsNoObjects(t *testing.T) {
	s := newServer(t, restUsers)
	alice, bob := newPerson(t, s, "alice"), newPerson(t, s, "bob")
	must(t, "bucket")(alice.s3(t, s, "PUT", "/hers", "", "X-Amz-Acl", "public-read"))
	must(t, "object")(alice.s3(t, s, "PUT", "/hers/k", "hers"))
	must(t, "public object")(alice.s3(t, s, "PUT", "/hers/public", "for all", "X-Amz-Acl", "public-read"))
	for _, p := range []person{{name: "a stranger"}, bob} {
		if body := must(t, "list")(p.s3(t, s, "GET", "/hers", "")); !strings.Contains(body, "<Key>k</Key>") {
			t.Errorf("%s lists %s", p.name, body)
		}
		must(t, "public object")(p.s3(t, s, "GET", "/hers/public", ""))
		refused(t, p.name+" reads")(p.s3(t, s, "GET", "/hers/k", ""))
		refused(t, p.name+" reads tags")(p.s3(t, s, "GET", "/hers/k?tagging", ""))
		refused(t, p.name+" reads the ACL")(p.s3(t, s, "GET", "/hers/k?acl", ""))
	}
	must(t, "bucket of bob")(bob.s3(t, s, "PUT", "/his", ""))
	refused(t, "bob copies")(bob.s3(t, s, "PUT", "/his/k", "", "X-Amz-Copy-Source", "/hers/k"))
	refused(t, "bob reads over REST")(bob.rest(t, s, "GET", "/hers/k", ""))
}

// TestACLEndsWithTheContent: what was granted for one content does not hold for
// what POSIX writes, nor against the mode that its owner chooses afterwards.
func TestACLEndsWithTheContent(t *testing.T) {
	s := newServer(t, testenv.ServerOptions{})
	alice := newPerson(t, s, "alice")
	var stranger person
	must(t, "bucket")(alice.s3(t, s, "PUT", "/hers", ""))
	for _, key := range []string{"rewritten", "closed", "cut"} {
		must(t, "object")(alice.s3(t, s, "PUT", "/hers/"+key, "for all", "X-Amz-Acl", "public-read"))
		must(t, "a stranger")(stranger.s3(t, s, "GET", "/hers/"+key, ""))
	}
	mount := s.Mount()
	path := func(key string) string { return filepath.Join(mount, "hers", key) }
	for _, err := range []error{
		os.WriteFile(path("rewritten"), []byte("for alice"), 0o644),
		os.Chmod(path("closed"), 0o600),
		os.Truncate(path("cut"), 3),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"rewritten", "closed", "cut"} {
		refused(t, "a stranger reads what was "+key)(stranger.s3(t, s, "GET", "/hers/"+key, ""))
	}
	// The last word: who owns the file grants again.
	must(t, "grant again")(alice.s3(t, s, "PUT", "/hers/closed?acl", "", "X-Amz-Acl", "public-read"))
	must(t, "a stranger")(stranger.s3(t, s, "GET", "/hers/closed", ""))
}

// TestWriteGrantee: WRITE on a bucket is no right to what others make there.
func TestWriteGrantee(t *testing.T) {
	s := newServer(t, testenv.ServerOptions{})
	alice, bob := newPerson(t, s, "alice"), newPerson(t, s, "bob")
	must(t, "bucket")(alice.s3(t, s, "PUT", "/hers", "", "X-Amz-Grant-Write", `id="bob"`, "X-Amz-Grant-Read", `id="bob"`))
	must(t, "object")(alice.s3(t, s, "PUT", "/hers/k", "of alice"))
	upload := uploadID(t, must(t, "upload")(alice.s3(t, s, "POST", "/hers/big?uploads", "")))
	must(t, "part")(alice.s3(t, s, "PUT", "/hers/big?partNumber=1&uploadId="+upload, "part"))

	refused(t, "bob reads")(bob.s3(t, s, "GET", "/hers/k", ""))
	refused(t, "bob grants")(bob.s3(t, s, "PUT", "/hers/k?acl", "", "X-Amz-Acl", "public-read"))
	refused(t, "bob lists parts")(bob.s3(t, s, "GET", "/hers/big?uploadId="+upload, ""))
	refused(t, "bob replaces a part")(bob.s3(t, s, "PUT", "/hers/big?partNumber=1&uploadId="+upload, "forged"))
	refused(t, "bob completes")(bob.s3(t, s, "POST", "/hers/big?uploadId="+upload, completeDoc))
	refused(t, "bob aborts")(bob.s3(t, s, "DELETE", "/hers/big?uploadId="+upload, ""))
	if body := must(t, "uploads")(bob.s3(t, s, "GET", "/hers?uploads", "")); strings.Contains(body, upload) {
		t.Errorf("bob is shown alice's upload:\n%s", body)
	}
	must(t, "alice's parts")(alice.s3(t, s, "GET", "/hers/big?uploadId="+upload, ""))

	// What he overwrites is his, and so is the ACL that he sends.
	must(t, "bob overwrites")(bob.s3(t, s, "PUT", "/hers/k", "of bob", "X-Amz-Acl", "public-read"))
	body := must(t, "its ACL")(alice.s3(t, s, "GET", "/hers/k?acl", ""))
	owner, _, _ := strings.Cut(body, "</Owner>")
	if !strings.Contains(owner, "<DisplayName>bob</DisplayName>") {
		t.Errorf("an ACL that bob set on what is not his:\n%s", body)
	}
}

// slowPut sends the head of a PUT and half of its body, calls meanwhile, sends
// the rest, and returns the status.
func slowPut(t *testing.T, r *http.Request, body string, meanwhile func()) int {
	t.Helper()
	conn, err := net.DialTimeout("tcp", r.URL.Host, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\nExpect: 100-continue\r\n", r.Method, r.URL.RequestURI(), r.URL.Host, len(body))
	for name, values := range r.Header {
		head += name + ": " + values[0] + "\r\n"
	}
	answers := bufio.NewReader(conn)
	fmt.Fprint(conn, head+"\r\n")
	// The server asks for the body after it looked at the rights.
	if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, "100") {
		t.Fatalf("instead of 100 Continue: %q %v", line, err)
	}
	answers.ReadString('\n')
	fmt.Fprint(conn, body[:len(body)/2])
	meanwhile()
	fmt.Fprint(conn, body[len(body)/2:])
	resp, err := http.ReadResponse(answers, r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// TestSlowPutIntoAnothersBucket: while a body is on its way, the bucket goes
// and another user makes one of that name.
func TestSlowPutIntoAnothersBucket(t *testing.T) {
	s := newServer(t, restUsers)
	bob, carol := newPerson(t, s, "bob"), newPerson(t, s, "carol")
	const body = "bob's bytes in carol's bucket"
	for _, acl := range []string{"private", "public-read-write"} {
		for _, door := range []string{"s3", "rest"} {
			bucket := "b-" + door + "-" + acl
			must(t, "bucket")(bob.s3(t, s, "PUT", "/"+bucket, ""))
			r := bob.s3Request(t, s, "PUT", "/"+bucket+"/k", body)
			if door == "rest" {
				r, _ = http.NewRequest("PUT", "http://"+s.REST+"/"+bucket+"/k", nil)
				r.SetBasicAuth(bob.key, bob.secret)
			}
			status := slowPut(t, r, body, func() {
				must(t, "delete")(bob.s3(t, s, "DELETE", "/"+bucket, ""))
				must(t, "make again")(carol.s3(t, s, "PUT", "/"+bucket, "", "X-Amz-Acl", acl))
			})
			refused(t, "a slow PUT over "+door+" into a bucket that is "+acl)(status, "")
			if status, got := carol.s3(t, s, "GET", "/"+bucket+"/k", ""); status != http.StatusNotFound {
				t.Errorf("carol's bucket holds bob's object: %d %s", status, got)
			}
		}
	}
	// What an administrator may write everywhere belongs where it was sent.
	root := person{name: "root", key: s.KeyID, secret: s.Secret}
	for _, door := range []string{"s3", "rest"} {
		bucket := "root-" + door
		must(t, "bucket")(bob.s3(t, s, "PUT", "/"+bucket, ""))
		r := root.s3Request(t, s, "PUT", "/"+bucket+"/k", body)
		if door == "rest" {
			r, _ = http.NewRequest("PUT", "http://"+s.REST+"/"+bucket+"/k", nil)
			r.SetBasicAuth(root.key, root.secret)
		}
		status := slowPut(t, r, body, func() {
			must(t, "delete")(bob.s3(t, s, "DELETE", "/"+bucket, ""))
			must(t, "make again")(carol.s3(t, s, "PUT", "/"+bucket, ""))
		})
		if got, content := carol.s3(t, s, "GET", "/"+bucket+"/k", ""); status != http.StatusNotFound || got != http.StatusNotFound {
			t.Errorf("a slow PUT of root's over %s into a bucket made anew: %d, and in carol's bucket: %d %s", door, status, got, content)
		}
	}
}

// TestGrantTakenBackDuringPut: a right that ends while a body is on its way.
func TestGrantTakenBackDuringPut(t *testing.T) {
	s := newServer(t, testenv.ServerOptions{})
	alice, bob := newPerson(t, s, "alice"), newPerson(t, s, "bob")
	must(t, "bucket")(alice.s3(t, s, "PUT", "/hers", "", "X-Amz-Grant-Write", `id="bob"`))
	const body = "too late"
	status := slowPut(t, bob.s3Request(t, s, "PUT", "/hers/k", body), body, func() {
		must(t, "take back")(alice.s3(t, s, "PUT", "/hers?acl", "", "X-Amz-Acl", "private"))
	})
	refused(t, "a PUT whose grant ended")(status, "")
	if status, got := alice.s3(t, s, "GET", "/hers/k", ""); status != http.StatusNotFound {
		t.Errorf("the object is there: %d %s", status, got)
	}
}

// restPaths are one path of each kind that the REST door distinguishes: objects, those
// that are not there, directories, buckets, listings, and what lies in no bucket.
var restPaths = []string{"/hers/d/k", "/hers/d/new", "/hers/d", "/hers/d/", "/hers/d/?list", "/hers/", "/hers", "/hers/?list",
	"/", "/file", "/No Bucket/k", "/hers/../hers/d/k", "/hers//d/k"}

// TestRESTBorders: another user's bucket through the REST door.
func TestRESTBorders(t *testing.T) {
	s := newServer(t, restUsers)
	alice, bob := newPerson(t, s, "alice"), newPerson(t, s, "bob")
	must(t, "alice writes")(alice.rest(t, s, "PUT", "/hers/d/k", "of alice"))
	for _, method := range rest.Methods() {
		for _, target := range restPaths {
			for _, p := range []person{{name: "a stranger"}, bob} {
				what := fmt.Sprintf("%s %s by %s", method, target, p.name)
				status, body := p.rest(t, s, method, target, "forged")
				if method == "OPTIONS" { // answers methods, of any path
					if status != http.StatusNoContent || body != "" {
						t.Errorf("%s: %d %s", what, status, body)
					}
					continue
				}
				if target == "/" && p.key != "" && status == http.StatusConflict {
					continue // a user learns that / is a directory
				}
				refused(t, what)(status, body)
			}
		}
	}
	if body := must(t, "alice reads")(alice.rest(t, s, "GET", "/hers/d/k", "")); body != "of alice" {
		t.Errorf("alice reads %q", body)
	}
	// A bucket that a PUT implied is its maker's as well.
	if status, body := bob.s3(t, s, "PUT", "/hers", ""); status != http.StatusConflict {
		t.Errorf("bob makes a bucket of what alice wrote over REST: %d %s", status, body)
	}
	refused(t, "bob reads what he took over")(bob.s3(t, s, "GET", "/hers/d/k", ""))
}
