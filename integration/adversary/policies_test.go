package adversary

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// prefixPolicy lets somebody read, and with more write, below a prefix.
func prefixPolicy(who, bucket, prefix string, actions ...string) string {
	return fmt.Sprintf(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"arn:aws:iam:::user/%s"},"Action":["%s"],"Resource":"arn:aws:s3:::%s/%s*"}]}`,
		who, strings.Join(actions, `","`), bucket, prefix)
}

// TestPrefixHolds: who may only use a prefix comes to nothing else, by whatever door,
// spelling, copy, batch or link.
func TestPrefixHolds(t *testing.T) {
	s := newServer(t, restUsers)
	alice, bob := newPerson(t, s, "alice"), newPerson(t, s, "bob")
	must(t, "bucket")(alice.s3(t, s, "PUT", "/pfx", ""))
	for _, key := range []string{"open/k", "open2", "secret/k", "openk"} {
		must(t, key)(alice.s3(t, s, "PUT", "/pfx/"+key, "secret bytes"))
	}
	must(t, "policy")(alice.s3(t, s, "PUT", "/pfx?policy", prefixPolicy("bob", "pfx", "open/", "s3:GetObject", "s3:PutObject", "s3:DeleteObject")))
	mount := s.Mount()
	for name, target := range map[string]string{"link": "../secret/k", "up": "../secret"} {
		if err := os.Symlink(target, filepath.Join(mount, "pfx/open", name)); err != nil {
			t.Fatal(err)
		}
	}
	if body := must(t, "reads what is allowed")(bob.s3(t, s, "GET", "/pfx/open/k", "")); body != "secret bytes" {
		t.Error(body)
	}
	for _, key := range []string{"secret/k", "open2", "openk", "open", "open/link", "open/up/k", "open/../secret/k", "open/%2e%2e/secret/k", "open%2F..%2Fsecret%2Fk", "Open/k"} {
		for _, method := range []string{"GET", "HEAD"} {
			if status, body := bob.s3(t, s, method, "/pfx/"+key, ""); status == http.StatusOK || strings.Contains(body, "secret bytes") {
				t.Errorf("%s %s: %d %s", method, key, status, body)
			}
		}
	}
	for _, key := range []string{"secret/k", "secret/new", "open2", "new"} {
		refused(t, "writes "+key)(bob.s3(t, s, "PUT", "/pfx/"+key, "forged"))
		refused(t, "deletes "+key)(bob.s3(t, s, "DELETE", "/pfx/"+key, ""))
		refused(t, "begins an upload of "+key)(bob.s3(t, s, "POST", "/pfx/"+key+"?uploads", ""))
	}
	refused(t, "copies out")(bob.s3(t, s, "PUT", "/pfx/open/copy", "", "X-Amz-Copy-Source", "/pfx/secret/k"))
	refused(t, "copies a link")(bob.s3(t, s, "PUT", "/pfx/open/copy", "", "X-Amz-Copy-Source", "/pfx/open/link"))
	refused(t, "lists")(bob.s3(t, s, "GET", "/pfx?list-type=2&prefix=open/", ""))
	refused(t, "asks for a key that is not there")(bob.s3(t, s, "GET", "/pfx/open/none", ""))
	for _, doc := range []string{prefixPolicy("bob", "pfx", "", "s3:*"), ""} {
		method := map[bool]string{true: "PUT", false: "DELETE"}[doc != ""]
		refused(t, method+" of the policy")(bob.s3(t, s, method, "/pfx?policy", doc))
	}
	status, body := bob.s3(t, s, "POST", "/pfx?delete", `<Delete><Object><Key>secret/k</Key></Object><Object><Key>open/k</Key></Object><Object><Key>openk</Key></Object></Delete>`)
	if strings.Count(body, "AccessDenied") != 2 || !strings.Contains(body, "<Deleted><Key>open/k</Key></Deleted>") {
		t.Errorf("deletes many: %d %s", status, body)
	}
	must(t, "what was attacked")(alice.s3(t, s, "GET", "/pfx/secret/k", ""))
}

// TestPolicyChangesWhileRequestsRun: a right that goes while others read and write is
// TestPrefixOfLists: what a policy says of s3:prefix is about the prefix within the
// bucket, by whatever door somebody lists.
func TestPrefixOfLists(t *testing.T) {
	s := newServer(t, restUsers)
	alice, bob := newPerson(t, s, "alice"), newPerson(t, s, "bob")
	must(t, "bucket")(alice.s3(t, s, "PUT", "/lists", ""))
	for _, key := range []string{"open/k", "secret/k", "lists/k"} {
		must(t, key)(alice.s3(t, s, "PUT", "/lists/"+key, "bytes"))
	}
	const statement = `{"Effect":%q,"Principal":{"AWS":"arn:aws:iam:::user/bob"},"Action":"s3:ListBucket","Resource":"arn:aws:s3:::lists","Condition":{"StringLike":{"s3:prefix":%q}}}`
	list := func(prefix string, listed bool) {
		t.Helper()
		for door, answer := range map[string]func() (int, string){
			"s3":   func() (int, string) { return bob.s3(t, s, "GET", "/lists?list-type=2&delimiter=/&prefix="+prefix, "") },
			"rest": func() (int, string) { return bob.rest(t, s, "GET", "/lists/"+prefix, "") },
		} {
			if status, body := answer(); (status == http.StatusOK) != listed {
				t.Errorf("%s of %q: %d %s", door, prefix, status, body)
			}
		}
	}
	must(t, "allow")(alice.s3(t, s, "PUT", "/lists?policy", `{"Statement":[`+fmt.Sprintf(statement, "Allow", "open/*")+`]}`))
	list("open/", true)
	list("secret/", false)
	list("", false)
	must(t, "allow")(alice.s3(t, s, "PUT", "/lists?policy", `{"Statement":[`+fmt.Sprintf(statement, "Allow", "lists/*")+`]}`))
	list("lists/", true)
	list("secret/", false)
	list("", false)
	must(t, "deny")(alice.s3(t, s, "PUT", "/lists?policy", `{"Statement":[`+fmt.Sprintf(statement, "Allow", "*/")+","+fmt.Sprintf(statement, "Deny", "secret/*")+`]}`))
	list("open/", true)
	list("secret/", false)
}

// gone for all that begins after the answer.
func TestPolicyChangesWhileRequestsRun(t *testing.T) {
	s := newServer(t, restUsers)
	alice, bob := newPerson(t, s, "alice"), newPerson(t, s, "bob")
	must(t, "bucket")(alice.s3(t, s, "PUT", "/busy", ""))
	must(t, "object")(alice.s3(t, s, "PUT", "/busy/k", "v"))
	done := make(chan struct{})
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if status, body := bob.s3(t, s, []string{"GET", "PUT"}[i%2], "/busy/k", "v"); status != 200 && status != 403 {
					t.Errorf("%d %s", status, body)
				}
			}
		})
	}
	for range 20 {
		must(t, "allow")(alice.s3(t, s, "PUT", "/busy?policy", prefixPolicy("bob", "busy", "", "s3:GetObject", "s3:PutObject")))
		must(t, "allowed")(bob.s3(t, s, "GET", "/busy/k", ""))
		if status, body := alice.s3(t, s, "DELETE", "/busy?policy", ""); status != 204 {
			t.Fatalf("%d %s", status, body)
		}
		must(t, "take it over")(alice.s3(t, s, "PUT", "/busy/k", "v"))
		refused(t, "reads after that")(bob.s3(t, s, "GET", "/busy/k", ""))
		refused(t, "writes after that")(bob.s3(t, s, "PUT", "/busy/k", "v"))
	}
	close(done)
	group.Wait()
}

// TestPolicyDocumentsThatHurt: huge, deep and contradictory ones are refused in S3's
// terms, and what stood there stays.
func TestPolicyDocumentsThatHurt(t *testing.T) {
	s := newServer(t, restUsers)
	alice, bob := newPerson(t, s, "alice"), newPerson(t, s, "bob")
	must(t, "bucket")(alice.s3(t, s, "PUT", "/hurt", ""))
	must(t, "object")(alice.s3(t, s, "PUT", "/hurt/k", "v"))
	must(t, "policy")(alice.s3(t, s, "PUT", "/hurt?policy", prefixPolicy("bob", "hurt", "", "s3:GetObject")))
	for what, doc := range map[string]string{
		"deep":      `{"Statement":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`,
		"huge":      `{"Statement":[` + strings.Repeat(" ", 20<<10) + `]}`,
		"larger":    `{"Id":"` + strings.Repeat("x", 8<<20) + `"}`,
		"cut":       prefixPolicy("bob", "hurt", "", "s3:GetObject")[:100],
		"twice":     `{"Statement":[],"Statement":[]}`,
		"no JSON":   "<Policy/>",
		"elsewhere": prefixPolicy("bob", "other", "", "s3:GetObject"),
		"nobody":    prefixPolicy("mallory", "hurt", "", "s3:GetObject"),
	} {
		if status, body := alice.s3(t, s, "PUT", "/hurt?policy", doc); status != 400 || !strings.Contains(body, "<Code>MalformedPolicy</Code>") {
			t.Errorf("%s: %d %.300s", what, status, body)
		}
	}
	must(t, "what stood there")(bob.s3(t, s, "GET", "/hurt/k", ""))
	// What contradicts itself is taken, and denies, in either order.
	allowed, denied := `{"Effect":"Allow","Principal":"*","Action":"s3:*","Resource":"arn:aws:s3:::hurt/*"}`, `{"Effect":"Deny","Principal":"*","Action":"s3:GetObject","Resource":"arn:aws:s3:::hurt/k"}`
	for _, list := range []string{allowed + "," + denied, denied + "," + allowed} {
		must(t, "contradictory")(alice.s3(t, s, "PUT", "/hurt?policy", `{"Statement":[`+list+`]}`))
		refused(t, "what is denied, too")(bob.s3(t, s, "GET", "/hurt/k", ""))
		refused(t, "what is denied, too, at REST")(bob.rest(t, s, "GET", "/hurt/k", ""))
		must(t, "what is only allowed")(bob.s3(t, s, "PUT", "/hurt/bobs", "v"))
	}
	// The most expensive patterns that fit, for the longest key.
	slow := prefixPolicy("bob", "hurt", strings.Repeat("?*a", 6000), "s3:GetObject")
	must(t, "expensive")(alice.s3(t, s, "PUT", "/hurt?policy", slow))
	refused(t, "the longest key")(bob.s3(t, s, "GET", "/hurt/"+strings.Repeat("a/b", 341), ""))
}
