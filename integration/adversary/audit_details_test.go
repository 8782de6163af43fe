package adversary

import (
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"ogw/integration/testenv"
	"ogw/integration/testenv/nfsclient"
	"ogw/nfsserver/xdr"
)

// A line says what a request was about where that is in its body or in a header:
// the keys of DeleteObjects, the source of a copy, the key of a form.
func TestAuditOfBodies(t *testing.T) {
	s := newServer(t, testenv.ServerOptions{Extra: "[audit]\ndata = true\n"})
	alice, bob := newPerson(t, s, "alice"), newPerson(t, s, "bob")
	must(t, "bucket")(alice.s3(t, s, "PUT", "/hers", "", "X-Amz-Grant-Write", `id="bob"`))
	must(t, "bucket")(bob.s3(t, s, "PUT", "/his", ""))
	must(t, "object")(alice.s3(t, s, "PUT", "/hers/secret", "for alice"))
	ownedFile(t, s.Mount(), "hers", alice.uid)

	keys := ""
	for i := range 500 {
		keys += fmt.Sprintf("<Object><Key>a key/%d</Key></Object>", i)
	}
	must(t, "delete many")(bob.s3(t, s, "POST", "/hers?delete", "<Delete>"+keys+"<Object><Key>dir/f</Key></Object></Delete>"))
	refused(t, "copy")(bob.s3(t, s, "PUT", "/his/copy", "", "X-Amz-Copy-Source", "/hers/secret"))
	must(t, "copy")(alice.s3(t, s, "PUT", "/hers/copy", "", "X-Amz-Copy-Source", "/hers/secret"))
	must(t, "form")(person{}.s3(t, s, "POST", "/hers", signedForm(alice, "hers", "by/form"), "Content-Type", formType))
	refused(t, "form")(person{}.s3(t, s, "POST", "/hers", formBody, "Content-Type", formType))
	for _, want := range []struct{ operation, user, target, result, code, detail string }{
		{"DeleteObjects", "bob", "/hers", "refused", "AccessDenied", `refused=1 ["dir/f"] deleted=500 ["a key/0" "a key/1"`},
		{"PutObject", "bob", "/his/copy", "refused", "AccessDenied", "source=/hers/secret"},
		{"PutObject", "alice", "/hers/copy", "ok", "", "source=/hers/secret"},
		{"PostObject", "alice", "/hers/by/form", "ok", "", ""},
		{"PostObject", "", "/hers/secret", "refused", "AccessDenied", ""},
	} {
		audited(t, s, fmt.Sprintf("%+v", want), func(l auditLine) bool {
			return l.Operation == want.operation && l.User == want.user && l.Target == want.target && l.Result == want.result &&
				l.Error == want.code && strings.Contains(l.Detail, want.detail) && len(l.Detail) < 1<<11
		})
	}
}

// The keys that a DeleteObjects removed are all in the log, in lines that a syslog server
// takes, and also where it could not remove another one.
func TestAuditOfManyKeys(t *testing.T) {
	s := newServer(t, testenv.ServerOptions{Extra: "[audit]\ndata = true\n"})
	alice := newPerson(t, s, "alice")
	must(t, "bucket")(alice.s3(t, s, "PUT", "/hers", ""))
	must(t, "policy")(alice.s3(t, s, "PUT", "/hers?policy", `{"Statement":{"Effect":"Deny","Principal":"*","Action":"s3:DeleteObject","Resource":"arn:aws:s3:::hers/kept"}}`))
	for _, more := range []string{"", "<Object><Key>kept</Key></Object>"} {
		asked := map[string]bool{} // whether it was found
		doc := more
		for i := range 1000 - strings.Count(more, "<Key>") {
			key := fmt.Sprintf("%d %.1s \\ ", i, more)
			key += strings.Repeat("k", 1024-len(key))
			asked[key] = false
			doc += "<Object><Key>" + strings.ReplaceAll(key, "<", "&lt;") + "</Key></Object>"
		}
		must(t, "delete many")(alice.s3(t, s, "POST", "/hers?delete", "<Delete>"+doc+"</Delete>"))
		testenv.Eventually(t, "all keys in the audit log", func() error {
			found := 0
			for _, l := range auditLog(t, s) {
				for _, k := range l.Keys {
					k, err := strconv.Unquote(`"` + k + `"`)
					if _, ok := asked[k]; ok && err == nil {
						found++
						asked[k] = true
					}
				}
				if n := len(strings.Join(l.Keys, `","`)); n > 7<<10 || n > 0 && (l.Operation != "DeleteObjects" || l.Result != "ok" || l.User != "alice" || l.Target != "/hers") {
					t.Errorf("%d bytes of keys in %+v", n, l)
				}
			}
			if found != len(asked) {
				return fmt.Errorf("%d of %d keys", found, len(asked))
			}
			return nil
		})
		for k, ok := range asked {
			if !ok {
				t.Errorf("no %q", k)
			}
		}
	}
}

// What a bucket is configured to is in the line, as far as one holds it.
func TestAuditOfConfiguration(t *testing.T) {
	s := newServer(t, testenv.ServerOptions{})
	alice := newPerson(t, s, "alice")
	must(t, "bucket")(alice.s3(t, s, "PUT", "/hers", ""))
	long := `{"Statement":[` + strings.Repeat(statementDoc+",", 30) + statementDoc + `]}`
	for _, c := range []struct{ operation, query, body, detail string }{
		{"PutBucketTagging", "tagging", taggingDoc, "tags=of=mallory"},
		{"PutBucketCors", "cors", corsDoc, `cors={"Rules":[{`},
		{"PutBucketPolicy", "policy", policyDoc, `policy={"Statement":{"Effect":"Allow","Principal":"*"`},
		{"PutBucketPolicy", "policy", long, " bytes, sha256="},
		{"PutPublicAccessBlock", "publicAccessBlock", blockDoc, "BlockPublicAcls=false IgnorePublicAcls=false"},
		{"PutBucketRequestPayment", "requestPayment", payerDoc, "payer=BucketOwner"},
		{"DeleteBucketPolicy", "policy", "", ""},
	} {
		method := "PUT"
		if c.body == "" {
			method = "DELETE"
		}
		must(t, c.operation)(alice.s3(t, s, method, "/hers?"+c.query, c.body))
		audited(t, s, fmt.Sprintf("%s with %q", c.operation, c.detail), func(l auditLine) bool {
			return l.Class == "admin" && l.Operation == c.operation && l.Target == "/hers" && strings.Contains(l.Detail, c.detail) && len(l.Detail) < 1<<11
		})
	}
}

// statementDoc is that of policyDoc.
const statementDoc = `{"Effect":"Allow","Principal":"*","Action":"s3:GetObject","Resource":"arn:aws:s3:::hers/*"}`

// Whoever only probes what is there is known, too, with HEAD and by locks; and who
// sets file flags, which bind everybody. (The kernel refuses those by itself.)
func TestAuditOfProbesAndFlags(t *testing.T) {
	s := newServer(t, restUsers)
	alice, bob := newPerson(t, s, "alice"), newPerson(t, s, "bob")
	must(t, "bucket")(alice.s3(t, s, "PUT", "/hers", ""))
	mount := s.Mount()
	ownedFile(t, mount, "hers", alice.uid)
	for _, p := range []person{{}, bob} {
		refused(t, "HEAD of a bucket")(p.s3(t, s, "HEAD", "/hers", ""))
		refused(t, "HEAD of an object")(p.s3(t, s, "HEAD", "/hers/dir/f", ""))
		refused(t, "HEAD of nothing")(p.s3(t, s, "HEAD", "/hers/nothing", ""))
		refused(t, "HEAD over REST")(p.rest(t, s, "HEAD", "/hers/dir/f", ""))
		for _, want := range []string{"HeadBucket /hers", "HeadObject /hers/dir/f", "HeadObject /hers/nothing", "HEAD /hers/dir/f"} {
			audited(t, s, want, func(l auditLine) bool {
				return l.Operation+" "+l.Target == want && l.Result == "refused" && l.User == p.name && l.Request != ""
			})
		}
	}

	file := filepath.Join(mount, "hers", "dir", "f")
	for _, act := range [][]string{{"+ia", "flags=ia"}, {"-ia", "flags="}} {
		if out, err := exec.Command("chattr", act[0], file).CombinedOutput(); err != nil {
			t.Fatalf("chattr: %v %s", err, out)
		}
		audited(t, s, "chattr "+act[0], func(l auditLine) bool {
			return l.Door == "fuse" && l.Operation == "ioctl" && l.Class == "admin" && l.Result == "ok" && l.Target == "/hers/dir/f" && l.Detail == act[1]
		})
	}

	c := dialNFS(t, s, "127.0.4.3")
	fh := c.lookup(c.lookup(c.lookup(c.mount("/"), "hers"), "dir"), "f")
	c.Cred = nfsclient.Cred{Machine: "probe", UID: uint32(bob.uid), GID: uint32(bob.uid)}
	var w xdr.Writer
	w.Opaque([]byte("cookie"))
	w.Bool(false)
	w.Bool(true) // exclusive
	w.String("probe")
	w.Opaque(fh)
	w.Opaque([]byte("owner"))
	w.Uint32(7)
	w.Uint64(0)
	w.Uint64(0)
	w.Bool(false)
	w.Uint32(0)
	const nlm, nlmLock = 100021, 2
	if r, err := c.Call(nlm, 4, nlmLock, w.B); err != nil || string(r.Opaque(16)) != "cookie" || r.Uint32() == nfsclient.OK {
		t.Errorf("another's file is locked: %v", err)
	}
	l := audited(t, s, "the refused lock", func(l auditLine) bool { return l.Operation == "NLM_LOCK" })
	if l.Result != "refused" || l.Class != "access" || l.User != "bob" || l.Target != "/hers/dir/f" || l.Agent != "probe" ||
		!strings.HasPrefix(l.From, "127.0.4.3:") || l.Error == "" {
		t.Errorf("%+v", l)
	}
}

// A policy that refuses a page of another origin is a refusal as well.
func TestAuditOfPreflights(t *testing.T) {
	s := newServer(t, testenv.ServerOptions{})
	alice := newPerson(t, s, "alice")
	must(t, "bucket")(alice.s3(t, s, "PUT", "/hers", ""))
	if status, body := (person{}).s3(t, s, http.MethodOptions, "/hers/x", "", preflightHeaders...); status != http.StatusForbidden {
		t.Fatalf("%d %s", status, body)
	}
	audited(t, s, "the preflight", func(l auditLine) bool {
		return l.Operation == "PreflightRequest" && l.Result == "refused" && l.Target == "/hers/x"
	})
}
