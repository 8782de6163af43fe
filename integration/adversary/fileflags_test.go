package adversary

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestImmutableObjects: whoever has every right to an object, at every door, does
// not change it while root says that it is immutable, and does not take that back.
func TestImmutableObjects(t *testing.T) {
	s := newServer(t, restUsers)
	alice, admin := newPerson(t, s, "alice"), person{name: "root", key: s.KeyID, secret: s.Secret}
	must(t, "bucket")(alice.s3(t, s, "PUT", "/hers", ""))
	must(t, "object")(alice.s3(t, s, "PUT", "/hers/dir/f", "kept"))
	must(t, "object")(alice.s3(t, s, "PUT", "/hers/other", "forged"))
	file := filepath.Join(s.Mount(), "hers", "dir", "f")
	chattr := func(flag, name string) {
		t.Helper()
		if out, err := exec.Command("chattr", flag, name).CombinedOutput(); err != nil {
			t.Fatalf("chattr %s: %v: %s", flag, err, out)
		}
	}
	if err := os.Chown(file, alice.uid, alice.uid); err != nil {
		t.Fatal(err)
	}
	attack := func(p person) {
		t.Helper()
		what := func(act string) string { return p.name + " " + act }
		refused(t, what("overwrites"))(p.s3(t, s, "PUT", "/hers/dir/f", "forged"))
		refused(t, what("deletes"))(p.s3(t, s, "DELETE", "/hers/dir/f", ""))
		refused(t, what("copies onto it"))(p.s3(t, s, "PUT", "/hers/dir/f", "", "X-Amz-Copy-Source", "/hers/other"))
		refused(t, what("uploads onto it"))(p.s3(t, s, "POST", "/hers/dir/f?uploads", ""))
		refused(t, what("tags it"))(p.s3(t, s, "PUT", "/hers/dir/f?tagging", "<Tagging><TagSet/></Tagging>"))
		refused(t, what("opens it to all"))(p.s3(t, s, "PUT", "/hers/dir/f?acl", "", "X-Amz-Acl", "public-read-write"))
		if _, body := p.s3(t, s, "POST", "/hers?delete", `<Delete><Object><Key>dir/f</Key></Object></Delete>`); !strings.Contains(body, "AccessDenied") {
			t.Errorf("%s: %s", what("deletes many"), body)
		}
		refused(t, what("overwrites over REST"))(p.rest(t, s, "PUT", "/hers/dir/f", "forged"))
		refused(t, what("deletes over REST"))(p.rest(t, s, "DELETE", "/hers/dir/f", ""))
	}
	local := func() {
		t.Helper()
		for _, act := range [][]string{{"chattr", "-i", file}, {"chattr", "-a", file}, {"chattr", "-i", filepath.Dir(file)},
			{"rm", "-f", file}, {"mv", file, file + "2"}, {"dd", "if=/dev/zero", "count=1", "of=" + file}, {"truncate", "-s", "0", file},
			{"chmod", "666", file}, {"ln", file, file + "2"}, {"rm", "-rf", filepath.Dir(file)}} {
			if out, err := asUser(t, uint32(alice.uid), uint32(alice.uid), act[0], act[1:]...); err == nil {
				t.Errorf("the owner does %v: %s", act, out)
			}
		}
	}
	kept := func() {
		t.Helper()
		if b := must(t, "read")(alice.s3(t, s, "GET", "/hers/dir/f", "")); b != "kept" {
			t.Errorf("the object holds %q", b)
		}
	}
	for _, flag := range []string{"i", "a"} {
		chattr("+"+flag, file)
		attack(alice)
		attack(admin)
		local()
		kept()
		chattr("-"+flag, file)
	}
	chattr("+i", filepath.Dir(file))
	refused(t, "a key beside it")(alice.s3(t, s, "PUT", "/hers/dir/g", "forged"))
	refused(t, "the deletion")(alice.s3(t, s, "DELETE", "/hers/dir/f", ""))
	s.Stop()
	s.Start()
	kept()
	refused(t, "the deletion after a restart")(admin.s3(t, s, "DELETE", "/hers/dir/f", ""))
}
