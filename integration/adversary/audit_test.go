package adversary

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"ogw/integration/testenv"
)

// auditLine is a line of the audit log.
type auditLine struct {
	Class, Door, Gateway, Operation, Target, User, From, Result, Error, Request, Detail, Agent string
	UserID                                                                                     string `json:"user_id"`
	UID                                                                                        *uint32
	Count                                                                                      uint64
	Keys                                                                                       []string
}

// auditLog returns the lines of the audit log. Each must be a JSON object of
// printable characters.
func auditLog(t *testing.T, s *testenv.Server) (out []auditLine) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.Data, "audit.log"))
	if err != nil {
		t.Fatalf("there is no audit log: %v", err)
	}
	for line := range strings.Lines(string(text)) {
		var l auditLine
		if err := json.Unmarshal([]byte(line), &l); err != nil || l.Operation == "" {
			t.Errorf("not a line of the audit log: %q: %v", line, err)
		}
		if strings.ContainsFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("not printable: %q", line)
		}
		out = append(out, l)
	}
	return out
}

// audited waits for a line that fits: it is written when the answer was sent.
func audited(t *testing.T, s *testenv.Server, what string, fits func(auditLine) bool) (found auditLine) {
	t.Helper()
	testenv.Eventually(t, what+" in the audit log", func() error {
		for _, l := range auditLog(t, s) {
			if fits(l) {
				found = l
				return nil
			}
		}
		return errors.New("no such line")
	})
	return found
}

// Nothing that a client sends makes a second line, or passes for another field.
func TestAuditInjection(t *testing.T) {
	s := newServer(t, testenv.ServerOptions{})
	forged := `{"class":"admin","door":"admin","operation":"AddUser","user":"operator","target":"mallory","result":"ok"}`
	alice := newPerson(t, s, "alice")
	for i, name := range []string{"a%0A" + forged, "%1B%5B2J", "%C2%85%E2%80%AE", "%FF%FE", `%22,%22result%22:%22ok`, "%5Cn"} {
		name = strings.NewReplacer(" ", "%20", `"`, "%22", "{", "%7B", "}", "%7D").Replace(name)
		agent := fmt.Sprintf("%d \u009b31m \\n %s", i, forged)
		(person{}).s3(t, s, "GET", "/hers/"+name, "", "User-Agent", agent)
		(person{}).s3(t, s, "GET", "/hers/x?AWSAccessKeyId=A"+name+"&Signature=x&Expires=9999999999", "")
		(person{}).s3(t, s, "GET", "/hers/x?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential="+name+
			"%2F20260101%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20260101T000000Z&X-Amz-Expires=60&X-Amz-SignedHeaders=host&X-Amz-Signature=00", "")
	}
	alice.s3(t, s, "PUT", "/photos", "")
	audited(t, s, "CreateBucket", func(l auditLine) bool { return l.Operation == "CreateBucket" })
	for _, l := range auditLog(t, s) {
		if l.Operation == "AddUser" && strings.Contains(l.Target, "mallory") || l.Class == "access" && l.Result != "refused" {
			t.Errorf("forged: %+v", l)
		}
	}
}

// A flood of refusals leaves few lines, and one that counts the others.
func TestAuditFlood(t *testing.T) {
	s := newServer(t, testenv.ServerOptions{})
	alice := newPerson(t, s, "alice")
	must(t, "bucket")(alice.s3(t, s, "PUT", "/hers", ""))
	const flood = 3000
	for i := range flood {
		status, body := (person{}).s3(t, s, "GET", fmt.Sprintf("/hers/%d-%s", i, strings.Repeat("x", 500)), "")
		if status != http.StatusForbidden {
			t.Fatalf("%d %s", status, body)
		}
	}
	must(t, "bucket")(alice.s3(t, s, "PUT", "/his", ""))
	s.Stop()
	info, err := os.Stat(filepath.Join(s.Data, "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > 128<<10 || info.Mode().Perm() != 0o600 {
		t.Errorf("%d bytes, mode %v", info.Size(), info.Mode())
	}
	refused, acts := uint64(0), 0
	for _, l := range auditLog(t, s) {
		switch {
		case l.Operation == "Suppressed":
			refused += l.Count
		case l.Result == "refused":
			refused++
		case l.Operation == "CreateBucket":
			acts++
		}
	}
	if refused < flood || refused > flood+10 || acts != 2 { // the harness asks, too
		t.Errorf("%d of %d refusals are counted, and %d of 2 acts", refused, flood, acts)
	}
}

// A link in the place of the file leads the server nowhere.
func TestAuditSymlink(t *testing.T) {
	s := newServer(t, testenv.ServerOptions{})
	s.Stop()
	victim := filepath.Join(s.Dir, "victim")
	log := filepath.Join(s.Data, "audit.log")
	if err := errors.Join(os.WriteFile(victim, []byte("precious"), 0o600), os.RemoveAll(log), os.Symlink(victim, log)); err != nil {
		t.Fatal(err)
	}
	out, err := s.TryOGW("user", "add", "mallory")
	if err == nil || !strings.Contains(out, "symbolic link") {
		t.Errorf("%v: %s", err, out)
	}
	if b, err := os.ReadFile(victim); err != nil || string(b) != "precious" {
		t.Errorf("%v: the victim holds %q", err, b)
	}
}
