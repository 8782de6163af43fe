package adversary

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ogw/integration/testenv"
	"ogw/integration/testenv/nfsclient"
)

// at is a request whose Host is the name by which clients reach the server.
func at(t *testing.T, p person, s *testenv.Server, host, method, target, body string) (int, string) {
	t.Helper()
	// The signature covers the Host: sign for that name, send to the server.
	named := *s
	named.S3 = host
	r := p.s3Request(t, &named, method, target, body)
	r.URL.Host, r.Host = s.S3, host
	return send(t, r)
}

// Bob makes a bucket called like the endpoint, writable to all. What others
// send to that name must not go into it.
func TestEndpointTakenOver(t *testing.T) {
	const endpoint = "objects.corp.example"
	s := newServer(t, testenv.ServerOptions{})
	alice, bob := newPerson(t, s, "alice"), newPerson(t, s, "bob")
	must(t, "alice's bucket")(alice.s3(t, s, "PUT", "/desk", ""))
	must(t, "alice's object")(alice.s3(t, s, "PUT", "/desk/plan", "alice's"))
	must(t, "bob's bucket")(bob.s3(t, s, "PUT", "/"+endpoint, "", "X-Amz-Acl", "public-read-write"))
	must(t, "bob's forgery")(bob.s3(t, s, "PUT", "/"+endpoint+"/desk/plan", "forged", "X-Amz-Acl", "public-read"))
	if got := must(t, "alice reads")(at(t, alice, s, endpoint, "GET", "/desk/plan", "")); got != "alice's" {
		t.Errorf("alice reads %q", got)
	}
	must(t, "alice writes")(at(t, alice, s, endpoint, "PUT", "/desk/new", "secret"))
	if status, body := bob.s3(t, s, "GET", "/"+endpoint+"/desk/new", ""); status == http.StatusOK {
		t.Errorf("bob holds what alice sent: %q", body)
	}
}

// With a service domain, neither its name nor one below it is to be had.
func TestServiceDomainTakenOver(t *testing.T) {
	s := newServer(t, testenv.ServerOptions{S3: `domains = ["s3.corp.example"]`, REST: "users = true"})
	bob := newPerson(t, s, "bob")
	makesNone(t, s, bob, "s3.corp.example", "x.s3.corp.example")
}

// makesNone tries to make buckets of these names at every door.
func makesNone(t *testing.T, s *testenv.Server, bob person, names ...string) {
	t.Helper()
	nfs := dialNFS(t, s, victim)
	root, mnt := nfs.mount("/"), s.Mount()
	if err := os.Mkdir(filepath.Join(mnt, "plain"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if status, _ := bob.s3(t, s, "PUT", "/"+name, ""); status/100 == 2 {
			t.Errorf("bob made the bucket %s", name)
		}
		if status, _ := bob.rest(t, s, "PUT", "/"+name+"/k", "x"); status/100 == 2 {
			t.Errorf("bob made the bucket %s over REST", name)
		}
		if out, err := s.TryOGW("bucket", "add", name); err == nil {
			t.Errorf("the operator made the bucket %s: %s", name, out)
		}
		if st, _, err := nfs.Mkdir(root, name); err != nil || st == nfsclient.OK {
			t.Errorf("MKDIR %s over NFS: %d %v", name, st, err)
		}
		if st, err := nfs.Rename(root, "plain", root, name); err != nil || st == nfsclient.OK {
			t.Errorf("RENAME to %s over NFS: %d %v", name, st, err)
		}
		if err := os.Mkdir(filepath.Join(mnt, name), 0o755); err == nil {
			t.Errorf("mkdir %s through a mount", name)
		}
		if err := os.Rename(filepath.Join(mnt, "plain"), filepath.Join(mnt, name)); err == nil {
			t.Errorf("mv to %s through a mount", name)
		}
	}
}

// A service domain below another one is not the bucket that the other one
// makes of its first label, in whatever order and at whichever gateway they are
// configured: not where bob's bucket was there first, and it cannot be made.
func TestNestedServiceDomainTakenOver(t *testing.T) {
	const outer, inner = "corp.example", "objects.corp.example"
	for name, lines := range map[string][2]string{
		"outer first":  {fmt.Sprintf("domains = [%q, %q]", outer, inner)},
		"inner first":  {fmt.Sprintf("domains = [%q, %q]", inner, outer)},
		"two gateways": {fmt.Sprintf("domains = [%q]", outer), fmt.Sprintf("domains = [%q]", inner)},
		"three levels": {fmt.Sprintf("domains = [%q, %q, %q]", outer, "s3."+inner, inner)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, testenv.ServerOptions{REST: "users = true"})
			alice, bob := newPerson(t, s, "alice"), newPerson(t, s, "bob")
			must(t, "bob's trap")(bob.s3(t, s, "PUT", "/objects", "", "X-Amz-Acl", "public-read-write"))
			must(t, "alice's bucket")(alice.s3(t, s, "PUT", "/hers", ""))
			must(t, "alice's object")(alice.s3(t, s, "PUT", "/hers/plan", "alice's"))
			withDomains(t, s, lines[0], lines[1])
			if got := must(t, "alice reads")(at(t, alice, s, inner, "GET", "/hers/plan", "")); got != "alice's" {
				t.Errorf("alice reads %q", got)
			}
			must(t, "alice writes")(at(t, alice, s, inner, "PUT", "/hers/new", "secret"))
			if status, body := bob.s3(t, s, "GET", "/objects/hers/new", ""); status == http.StatusOK {
				t.Errorf("bob holds what alice sent: %q", body)
			}
			must(t, "bob removes his trap")(bob.s3(t, s, "DELETE", "/objects", ""))
			// hers.objects would be taken for hers at the inner domain.
			makesNone(t, s, bob, inner, "objects", "hers.objects", "x."+outer)
		})
	}
}

// withDomains starts the server anew with lines for its S3 gateway, and a
// second such gateway if it has lines, too.
func withDomains(t *testing.T, s *testenv.Server, first, second string) {
	t.Helper()
	text, err := os.ReadFile(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	const gateway = "protocol = \"s3\"\n"
	lines := strings.Replace(string(text), gateway, gateway+first+"\n", 1)
	if second != "" {
		lines += fmt.Sprintf("\n[[gateway]]\nname = \"second\"\n%slisten = %q\n%s\n", gateway, testenv.FreeAddr(t), second)
	}
	s.Stop()
	if err := os.WriteFile(s.Config, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Start()
}

// A form that alice signed for one of her buckets is not good for another.
func TestFormWithoutBucket(t *testing.T) {
	s := newServer(t, testenv.ServerOptions{})
	alice := newPerson(t, s, "alice")
	for _, b := range []string{"drop", "site"} {
		must(t, "bucket")(alice.s3(t, s, "PUT", "/"+b, ""))
	}
	post := func(bucket, form string) (int, string) {
		return person{}.s3(t, s, "POST", "/"+bucket, form, "Content-Type", "multipart/form-data; boundary=x")
	}
	must(t, "a form for its bucket")(post("drop", signedForm(alice, "drop", "k")))
	refused(t, "a form for another bucket")(post("site", signedForm(alice, "drop", "k")))
	for _, conditions := range []string{"", `["starts-with", "$bucket", ""], `} {
		status, body := post("site", formWith(alice, "index.html", conditions))
		refused(t, "a form for any bucket")(status, body)
		if !strings.Contains(body, "AccessDenied") {
			t.Errorf("%d %s", status, body)
		}
	}
}

// A page of bob's, opened by an administrator, runs no script on the origin
// of the whole namespace.
func TestPageOverREST(t *testing.T) {
	s := newServer(t, testenv.ServerOptions{REST: "users = true"})
	bob := newPerson(t, s, "bob")
	root := person{key: s.KeyID, secret: s.Secret}
	for name, kind := range map[string]string{
		"page.html": "text/html", "picture.svg": "image/svg+xml", "page.xhtml": "application/xhtml+xml", "feed.xml": "text/xml",
		"guess": "", "lie": "text/html;image/png",
	} {
		must(t, name)(bob.rest(t, s, "PUT", "/bobs/"+name, "<script>fetch('/')</script>", "Content-Type", kind, "Content-Disposition", "inline"))
		r, err := http.NewRequest("GET", "http://"+s.REST+"/bobs/"+name, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth(root.key, root.secret)
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		h := resp.Header
		if resp.StatusCode != 200 || !strings.HasPrefix(h.Get("Content-Disposition"), "attachment") ||
			!strings.HasPrefix(h.Get("Content-Security-Policy"), "sandbox") || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v", name, resp.StatusCode, h)
		}
	}
}
