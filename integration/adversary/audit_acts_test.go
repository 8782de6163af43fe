package adversary

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ogw/httpapi/admin"
	"ogw/httpapi/s3"
	"ogw/integration/testenv"
	"ogw/integration/testenv/nfsclient"
	"ogw/nfsserver/xdr"
)

// requestID is what HTTP clients get as X-Request-Id.
var requestID = regexp.MustCompile(`^[0-9A-F]{16}$`)

// adminReads are the operations of the admin API that change nothing.
var adminReads = []string{"Status", "Gateways", "Mounts", "Whereis", "ListUsers", "ListBuckets", "Bucket", "Usage",
	"ListExports", "ListLocks", "ListQuarantine", "UseBackup", "ReadBackup", "RemoveBackup", "Health", "Ready", "Profile", "Authenticate",
	"ListRoles", "Role", "ListGroups", "ListPolicies", "Policy", "Simulate"}

// act is what an operator does, and what the line of it must say.
type act struct {
	operation, target, detail, result string
	args                              func() []string
}

// Every operation of the admin API that changes something is a line with who,
// from where, through which door, what, with which result and request ID. A new
// operation fails here until it has an act, or stands among the reads.
func TestAuditOfAdministration(t *testing.T) {
	s := newServer(t, testenv.ServerOptions{})
	mnt := filepath.Join(s.Dir, "mnt")
	if err := os.Mkdir(mnt, 0o755); err != nil {
		t.Fatal(err)
	}
	words := func(w ...string) func() []string { return func() []string { return w } }
	document := func(name, text string) string {
		file := filepath.Join(s.Dir, name)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}
	trust := document("trust.json", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"*"},"Action":"sts:AssumeRole"}]}`)
	reading := document("reading.json", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:GetObject","Resource":"*"}]}`)
	acts := []act{
		{"AddUser", "carol", "uid=4711", "ok", words("user", "add", "carol", "--uid", "4711")},
		{"RenameUser", "carol", "to=carla", "ok", words("user", "rename", "carol", "carla")},
		{"AddKey", "carla", "keys=", "ok", words("user", "key", "add", "carla")},
		{"RemoveKey", "carla", "key=", "ok", func() []string { return []string{"user", "key", "remove", "carla", keyOf(t, s, "carla")} }},
		{"RotateKeys", "carla", "keys=", "ok", words("user", "rotate", "carla")},
		{"AddBucket", "photos", "owner=carla", "ok", words("bucket", "add", "photos", "--owner", "carla")},
		{"SetBucket", "photos", `durability="async"`, "ok", words("bucket", "set", "photos", "--durability", "async")},
		{"AddExport", "/photos", "10.0.0.0/8", "ok", words("export", "add", "/photos", "--client", "10.0.0.0/8")},
		{"RevokeExport", "", "", "ok", func() []string { return []string{"export", "revoke", exportOf(t, s)} }},
		{"FreeLocks", "192.0.2.9", "", "failed", words("lock", "free", "--client", "192.0.2.9")},
		{"ReleaseQuarantine", "", "all=true", "ok", words("quarantine", "release", "--all")},
		{"AddBackup", "", "without_secrets=true", "ok", words("backup", filepath.Join(s.Dir, "backups"), "--without-secrets")},
		{"Mount", mnt, "", "ok", words("mount", mnt)},
		{"Umount", mnt, "", "ok", words("umount", mnt)},
		{"Purge", "photos", "", "ok", words("purge", "photos/")},
		{"Check", "", "", "ok", words("check")},
		{"RemoveBucket", "photos", "", "ok", words("bucket", "remove", "photos")},
		{"AddGroup", "staff", "", "ok", words("group", "add", "staff")},
		{"AddMember", "staff", "user=carla", "ok", words("group", "join", "staff", "carla")},
		{"PutPolicy", "reading", "policy={", "ok", words("policy", "put", "reading", reading)},
		{"AttachPolicy", "reading", "group=staff", "ok", words("policy", "attach", "reading", "--group", "staff")},
		{"DetachPolicy", "reading", "group=staff", "ok", words("policy", "detach", "reading", "--group", "staff")},
		{"RemovePolicy", "reading", "", "ok", words("policy", "remove", "reading")},
		{"RemoveMember", "staff", "user=carla", "ok", words("group", "leave", "staff", "carla")},
		{"RemoveGroup", "staff", "", "ok", words("group", "remove", "staff")},
		{"AddRole", "reader", "trust={", "ok", words("role", "add", "reader", "--trust", trust)},
		{"SetTrust", "reader", "trust={", "ok", words("role", "trust", "reader", "--trust", trust)},
		{"RevokeRole", "reader", "", "ok", words("role", "revoke", "reader")},
		{"RemoveRole", "reader", "", "ok", words("role", "remove", "reader")},
		{"RemoveUser", "carla", "", "ok", words("user", "remove", "carla")},
		{"Stop", "", "", "ok", words("stop")},
	}
	for _, op := range admin.Operations() {
		if !slices.Contains(adminReads, op) && !slices.ContainsFunc(acts, func(a act) bool { return a.operation == op }) {
			t.Errorf("operation %s of the admin API has no act here", op)
		}
	}
	for _, a := range acts {
		if out, err := s.TryOGW(a.args()...); (err == nil) != (a.result == "ok") {
			t.Fatalf("%s: %v %s", a.operation, err, out)
		}
		l := audited(t, s, a.operation, func(l auditLine) bool { return l.Operation == a.operation && l.Door == "admin" })
		if l.Class != "admin" || l.Result != a.result || l.User != "operator" || l.UID == nil || int(*l.UID) != os.Getuid() ||
			!strings.HasPrefix(l.From, fmt.Sprintf("unix:uid=%d,pid=", os.Getuid())) || !requestID.MatchString(l.Request) ||
			!strings.Contains(l.Target, a.target) || !strings.Contains(l.Detail, a.detail) {
			t.Errorf("%s: %+v", a.operation, l)
		}
	}
	<-s.Process.Done()
	s.Process = nil
	for _, want := range []auditLine{{Door: "process", Operation: "AddUser", Target: "root"}, {Door: "process", Operation: "Start"},
		{Door: "fuse", Operation: "Mount", Target: mnt}, {Door: "fuse", Operation: "Umount", Target: mnt}, {Door: "process", Operation: "End"}} {
		audited(t, s, want.Door+" "+want.Operation, func(l auditLine) bool {
			return l.Door == want.Door && l.Operation == want.Operation && l.Class == "admin" && l.Result == "ok" && strings.HasPrefix(l.Target, want.Target)
		})
	}
}

// keyOf returns an access key of a user.
func keyOf(t *testing.T, s *testenv.Server, name string) string {
	t.Helper()
	var users []struct {
		Name string
		Keys []struct{ ID string }
	}
	if err := json.Unmarshal([]byte(s.OGW("user", "list", "--json")), &users); err != nil {
		t.Fatal(err)
	}
	for _, u := range users {
		if u.Name == name && len(u.Keys) > 1 {
			return u.Keys[0].ID
		}
	}
	t.Fatalf("%s has no key to spare in %+v", name, users)
	return ""
}

// exportOf returns the ID of the export that was added.
func exportOf(t *testing.T, s *testenv.Server) string {
	t.Helper()
	var exports []struct{ ID string }
	if err := json.Unmarshal([]byte(s.OGW("export", "list", "--json")), &exports); err != nil {
		t.Fatal(err)
	}
	for _, e := range exports {
		if e.ID != "" {
			return e.ID
		}
	}
	t.Fatalf("no ID in %+v", exports)
	return ""
}

// What changes buckets and ACLs over S3 is a line with the user who did it.
func TestAuditOfS3Acts(t *testing.T) {
	s := newServer(t, testenv.ServerOptions{})
	alice := newPerson(t, s, "alice")
	for _, a := range []struct {
		operation, method, target, body, detail string
		headers                                 []string
	}{
		{operation: "CreateBucket", method: "PUT", target: "/hers"},
		{operation: "PutBucketAcl", method: "PUT", target: "/hers?acl", body: publicACL, detail: "everybody:FULL_CONTROL"},
		{operation: "PutObject", method: "PUT", target: "/hers/open", detail: "everybody:READ", headers: []string{"X-Amz-Acl", "public-read"}},
		{operation: "PutObjectAcl", method: "PUT", target: "/hers/open?acl", detail: "users:READ", headers: []string{"X-Amz-Acl", "authenticated-read"}},
		{operation: "CreateMultipartUpload", method: "POST", target: "/hers/big?uploads", detail: "everybody:READ", headers: []string{"X-Amz-Acl", "public-read"}},
		{operation: "DeleteBucket", method: "DELETE", target: "/hers"},
	} {
		if a.operation == "DeleteBucket" {
			must(t, "delete")(alice.s3(t, s, "DELETE", "/hers/open", ""))
		}
		must(t, a.operation)(alice.s3(t, s, a.method, a.target, a.body, a.headers...))
		l := audited(t, s, a.operation, func(l auditLine) bool { return l.Operation == a.operation })
		path, _, _ := strings.Cut(a.target, "?")
		if l.Class != "admin" || l.Door != "s3" || l.Gateway != "s3" || l.Result != "ok" || l.User != "alice" || l.UserID == "" ||
			l.UID == nil || int(*l.UID) != alice.uid || !strings.HasPrefix(l.From, "127.0.0.1:") || !requestID.MatchString(l.Request) ||
			l.Target != path || !strings.Contains(l.Detail, a.detail) {
			t.Errorf("%s: %+v", a.operation, l)
		}
	}
	for _, l := range auditLog(t, s) {
		if l.Operation == "DeleteObject" {
			t.Errorf("an operation on data that nobody asked to keep: %+v", l)
		}
	}
}

// Every S3 operation that is refused to a stranger is a line with the request
// ID that the stranger got.
func TestAuditOfS3Refusals(t *testing.T) {
	s := newServer(t, testenv.ServerOptions{})
	alice := newPerson(t, s, "alice")
	must(t, "bucket")(alice.s3(t, s, "PUT", "/hers", ""))
	must(t, "object")(alice.s3(t, s, "PUT", "/hers/secret", "for alice"))
	rows, i, refusals := attacks(), 0, 0
	for _, op := range s3.Routes() {
		a, ok := rows[fmt.Sprintf("%s %s %s %s", op.Name, op.Level, op.Method, op.Query)]
		if !ok {
			continue // TestEveryS3Operation says so
		}
		i++
		from := fmt.Sprintf("127.0.3.%d", i) // each client has lines of its own
		r := person{}.s3Request(t, s, op.Method, strings.ReplaceAll(a.target, "UPLOAD", "x"), a.body, a.headers...)
		resp, err := clientFrom(from).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusForbidden {
			continue
		}
		refusals++
		l := audited(t, s, "the refused "+op.Name, func(l auditLine) bool { return strings.HasPrefix(l.From, from+":") })
		if l.Class != "access" || l.Result != "refused" || l.Operation != op.Name || l.Request != resp.Header.Get("X-Amz-Request-Id") ||
			l.Error == "" || l.User != "" {
			t.Errorf("%s: %+v", op.Name, l)
		}
	}
	if refusals < 20 {
		t.Errorf("only %d operations were refused", refusals)
	}
}

// Over REST and NFS, too, who is refused and who changes buckets is known.
func TestAuditOfOtherDoors(t *testing.T) {
	s := newServer(t, testenv.ServerOptions{REST: "users = true"})
	alice := newPerson(t, s, "alice", "--uid", "4711")
	refused(t, "a stranger at REST")(person{}.rest(t, s, "GET", "/hers/x", ""))
	l := audited(t, s, "REST", func(l auditLine) bool { return l.Door == "rest" && l.Error == "unauthorized" })
	if l.Class != "access" || l.Result != "refused" || l.Operation != "GET" || l.Target != "/hers/x" || !requestID.MatchString(l.Request) {
		t.Errorf("%+v", l)
	}
	refused(t, "outside of buckets")(alice.rest(t, s, "PUT", "/not a bucket/x", ""))
	l = audited(t, s, "REST as alice", func(l auditLine) bool { return l.Door == "rest" && l.Operation == "PUT" })
	if l.Result != "refused" || l.User != "alice" || l.UserID == "" || l.UID == nil || *l.UID != 4711 {
		t.Errorf("%+v", l)
	}

	for _, a := range []struct{ method, target, detail string }{
		{"PUT", "/implied/x", "bucket=made"}, {"PUT", "/made/", "bucket=made"}, {"DELETE", "/made/", "bucket=removed"},
	} {
		must(t, a.method)(alice.rest(t, s, a.method, a.target, ""))
		l := audited(t, s, a.target, func(l auditLine) bool { return l.Door == "rest" && l.Operation == a.method && l.Target == a.target })
		if l.Class != "admin" || l.Result != "ok" || l.User != "alice" || l.Detail != "as="+alice.key+" "+a.detail {
			t.Errorf("%s %s: %+v", a.method, a.target, l)
		}
	}

	c := dialNFS(t, s, "127.0.4.1")
	root := c.mount("/")
	st, _, err := c.Mnt("/nowhere@a-guess")
	if err != nil || st == nfsclient.OK {
		t.Errorf("MNT /nowhere: %d %v", st, err)
	}
	mnt := audited(t, s, "MNT", func(l auditLine) bool { return l.Operation == "MNT" && l.Result == "refused" })
	if mnt.Class != "access" || mnt.Target != "/nowhere" || !strings.HasPrefix(mnt.From, "127.0.4.1:") || mnt.Request == "" {
		t.Errorf("%+v", mnt)
	}
	forged := slices.Clone(root)
	forged[len(forged)-1] ^= 1
	if _, err := c.Getattr(forged); err != nil {
		t.Fatal(err)
	}
	audited(t, s, "the forged handle", func(l auditLine) bool {
		return l.Operation == "GETATTR" && l.Error == "BADHANDLE" && l.Class == "access"
	})

	// Squashed, root is nobody, and may not make buckets; whoever owns / may.
	if err := os.Chmod(s.Mount(), 0o777); err != nil {
		t.Fatal(err)
	}
	st, _, err = c.Mkdir(root, "over-nfs")
	c.must("MKDIR", st, err)
	st, err = c.Rename(root, "over-nfs", root, "renamed")
	c.must("RENAME", st, err)
	var w xdr.Writer
	w.Opaque(root)
	w.String("renamed")
	const programNFS, procRmdir = 100003, 13
	if r, err := c.Call(programNFS, 3, procRmdir, w.B); err != nil || r.Uint32() != nfsclient.OK {
		t.Errorf("RMDIR: %v", err)
	}
	for op, target := range map[string]string{"MKDIR": "/over-nfs", "RENAME": "/over-nfs", "RMDIR": "/renamed"} {
		l := audited(t, s, op, func(l auditLine) bool { return l.Operation == op })
		if l.Class != "admin" || l.Result != "ok" || l.Door != "nfs" || l.Target != target || l.UID == nil || l.Request == "" ||
			!strings.HasPrefix(l.From, "127.0.4.1:") {
			t.Errorf("%s: %+v", op, l)
		}
	}
	if text, _ := os.ReadFile(filepath.Join(s.Data, "audit.log")); strings.Contains(string(text), "a-guess") {
		t.Error("the log holds what may be a secret")
	}
}

// Operations on data are kept where that was asked for.
func TestAuditOfData(t *testing.T) {
	s := newServer(t, testenv.ServerOptions{Extra: "[audit]\ndata = true\n"})
	alice := newPerson(t, s, "alice")
	must(t, "bucket")(alice.s3(t, s, "PUT", "/hers", ""))
	must(t, "put")(alice.s3(t, s, "PUT", "/hers/a", "x"))
	must(t, "get")(alice.s3(t, s, "GET", "/hers/a", ""))
	dir := s.Mount()
	if err := os.WriteFile(filepath.Join(dir, "hers", "b"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := dialNFS(t, s, "127.0.4.2")
	c.lookup(c.lookup(c.mount("/"), "hers"), "b")
	for _, want := range []string{"s3 PutObject /hers/a", "s3 GetObject /hers/a", "fuse create /hers/b", "fuse write /hers/b", "nfs MNT /"} {
		l := audited(t, s, want, func(l auditLine) bool { return l.Door+" "+l.Operation+" "+l.Target == want })
		if l.Class != "data" || l.Result != "ok" || l.From == "" {
			t.Errorf("%+v", l)
		}
	}
}
