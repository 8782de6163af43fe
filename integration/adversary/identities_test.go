package adversary

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"ogw/integration/testenv"
)

// withBucket makes a bucket of p's with the object "secret" in it.
func (p person) withBucket(t *testing.T, s *testenv.Server, bucket string) {
	t.Helper()
	must(t, "make "+bucket)(p.s3(t, s, "PUT", "/"+bucket, ""))
	must(t, "write into "+bucket)(p.s3(t, s, "PUT", "/"+bucket+"/secret", "of "+p.name))
}

// robs wants p to be refused the bucket, the object, and to change either.
func (p person) robs(t *testing.T, s *testenv.Server, bucket string) {
	t.Helper()
	refused(t, p.name+" lists")(p.s3(t, s, "GET", "/"+bucket, ""))
	refused(t, p.name+" reads")(p.s3(t, s, "GET", "/"+bucket+"/secret", ""))
	refused(t, p.name+" overwrites")(p.s3(t, s, "PUT", "/"+bucket+"/secret", "forged"))
	refused(t, p.name+" writes")(p.s3(t, s, "PUT", "/"+bucket+"/new", "forged"))
	refused(t, p.name+" opens it to all")(p.s3(t, s, "PUT", "/"+bucket+"?acl", "", "X-Amz-Acl", "public-read-write"))
	refused(t, p.name+" reads by REST")(p.rest(t, s, "GET", "/"+bucket+"/secret", ""))
}

// TestUIDOfRemovedUser: whoever comes after a user that was removed has
// nothing of what that one left, neither by chance nor by name.
func TestUIDOfRemovedUser(t *testing.T) {
	s := newServer(t, testenv.ServerOptions{REST: "users = true"})
	alice := newPerson(t, s, "alice")
	alice.withBucket(t, s, "hers")
	s.OGW("user", "remove", "alice")
	next := newPerson(t, s, "mallory")
	if next.uid == alice.uid {
		t.Errorf("the uid of a removed user is given again")
	}
	next.robs(t, s, "hers")
	newPerson(t, s, "alice").robs(t, s, "hers") // another one of that name

	uid := fmt.Sprint(alice.uid)
	out, err := s.TryOGW("user", "add", "heir", "--uid", uid)
	if err == nil || !strings.Contains(out, "--inherit") {
		t.Errorf("the uid of a removed user, without a word about it: %v: %s", err, out)
	}
	heir := newPerson(t, s, "heir", "--uid", uid, "--inherit")
	if got := must(t, "the heir reads")(heir.s3(t, s, "GET", "/hers/secret", "")); got != "of alice" {
		t.Errorf("the heir reads %q", got)
	}
}

// TestUIDOfAnother: two users are not made one owner.
func TestUIDOfAnother(t *testing.T) {
	s := newServer(t, testenv.ServerOptions{REST: "users = true"})
	alice := newPerson(t, s, "alice")
	alice.withBucket(t, s, "hers")
	for _, flags := range [][]string{nil, {"--inherit"}} {
		args := append([]string{"user", "add", "mallory", "--json", "--uid", fmt.Sprint(alice.uid)}, flags...)
		out, err := s.TryOGW(args...)
		if err != nil {
			if !strings.Contains(out, `"alice"`) || !strings.Contains(out, "several access keys") {
				t.Errorf("%q: %s", args, out)
			}
			continue
		}
		t.Errorf("two users have uid %d", alice.uid)
		var made struct{ Keys []struct{ ID, Secret string } }
		if err := json.Unmarshal([]byte(out), &made); err != nil {
			t.Fatal(err)
		}
		person{name: "mallory", uid: alice.uid, key: made.Keys[0].ID, secret: made.Keys[0].Secret}.robs(t, s, "hers")
		s.OGW("user", "remove", "mallory")
	}
}

// TestGrantByName: a grant is the user's who had the name when it was given,
// and nobody's who takes that name.
func TestGrantByName(t *testing.T) {
	s := newServer(t, testenv.ServerOptions{REST: "users = true"})
	alice, bob := newPerson(t, s, "alice"), newPerson(t, s, "bob")
	alice.withBucket(t, s, "hers")
	must(t, "grant on the bucket")(alice.s3(t, s, "PUT", "/hers?acl", "", "X-Amz-Grant-Full-Control", "id=bob"))
	must(t, "grant on the object")(alice.s3(t, s, "PUT", "/hers/secret?acl", "", "X-Amz-Grant-Full-Control", "id=bob"))
	must(t, "bob lists")(bob.s3(t, s, "GET", "/hers", ""))
	must(t, "bob reads")(bob.s3(t, s, "GET", "/hers/secret", ""))
	s.OGW("user", "remove", "bob")
	newPerson(t, s, "bob").robs(t, s, "hers")
}

// TestNameOfRenamedUser: a rename takes nothing away, and leaves nothing with
// the name.
func TestNameOfRenamedUser(t *testing.T) {
	s := newServer(t, testenv.ServerOptions{REST: "users = true"})
	alice, bob := newPerson(t, s, "alice"), newPerson(t, s, "bob")
	alice.withBucket(t, s, "hers")
	must(t, "grant on the bucket")(alice.s3(t, s, "PUT", "/hers?acl", "", "X-Amz-Grant-Full-Control", "id=bob"))
	must(t, "grant on the object")(alice.s3(t, s, "PUT", "/hers/secret?acl", "", "X-Amz-Grant-Full-Control", "id=bob"))
	s.OGW("user", "rename", "bob", "robert")
	s.OGW("user", "rename", "alice", "alicia")
	must(t, "robert lists")(bob.s3(t, s, "GET", "/hers", ""))
	must(t, "robert reads")(bob.s3(t, s, "GET", "/hers/secret", ""))
	must(t, "alicia writes")(alice.s3(t, s, "PUT", "/hers/other", "x"))
	newPerson(t, s, "bob").robs(t, s, "hers")
	newPerson(t, s, "alice").robs(t, s, "hers")
}

// TestNameLikeAnID: nobody is called what another one is.
func TestNameLikeAnID(t *testing.T) {
	s := newServer(t, testenv.ServerOptions{})
	alice := newPerson(t, s, "alice")
	alice.withBucket(t, s, "hers")
	acl := must(t, "acl")(alice.s3(t, s, "GET", "/hers?acl", ""))
	_, rest, _ := strings.Cut(acl, "<ID>")
	id, _, _ := strings.Cut(rest, "</ID>")
	if out, err := s.TryOGW("user", "add", id); err == nil {
		t.Errorf("a user has the name %s, by which S3 means alice: %s", id, out)
	}
	if out, err := s.TryOGW("user", "rename", "alice", id); err == nil {
		t.Errorf("renamed to an ID: %s", out)
	}
}
