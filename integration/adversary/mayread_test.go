package adversary

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"ogw/integration/testenv"
)

// TestMayRead holds `ogw user add --may-read` to its word: the key lists and reads the
// prefix through S3 and REST, and does nothing else. At POSIX doors the user is a uid
// like others: modes decide (docs/security.md).
func TestMayRead(t *testing.T) {
	s := newServer(t, restUsers)
	root := person{name: "root", key: s.KeyID, secret: s.Secret}
	for _, target := range []string{"/photos", "/other"} {
		must(t, target)(root.s3(t, s, "PUT", target, ""))
	}
	for _, key := range []string{"/photos/2026/cat", "/photos/2026/a/dog", "/photos/2025/cat", "/photos/2026", "/other/2026/cat"} {
		must(t, key)(root.s3(t, s, "PUT", key, "of "+key))
	}
	tv := newPerson(t, s, "tv", "--may-read", "photos/2026/")
	for _, key := range []string{"/photos/2026/cat", "/photos/2026/a/dog"} {
		for door, send := range doors(tv) {
			if status, body := send(t, s, "GET", key, ""); status != http.StatusOK || body != "of "+key {
				t.Errorf("%s: %s: %d %s", door, key, status, body)
			}
		}
	}
	must(t, "list")(tv.s3(t, s, "GET", "/photos?list-type=2&prefix=2026/", ""))
	must(t, "list over REST")(tv.rest(t, s, "GET", "/photos/2026/", ""))
	for _, dir := range []string{"/", "/photos/", "/photos/2025/", "/other/", "/other/2026/"} {
		refused(t, "list of "+dir+" over REST")(tv.rest(t, s, "GET", dir, ""))
	}
	must(t, "location")(tv.s3(t, s, "GET", "/photos?location", ""))
	for door, send := range doors(tv) {
		for _, key := range []string{"/photos/2025/cat", "/photos/2026", "/other/2026/cat", "/photos/none"} {
			refused(t, door+": GET "+key)(send(t, s, "GET", key, ""))
		}
		for _, method := range []string{"PUT", "DELETE"} {
			for _, key := range []string{"/photos/2026/cat", "/photos/2026/new", "/other/new"} {
				refused(t, door+": "+method+" "+key)(send(t, s, method, key, "of the reader"))
			}
		}
	}
	for _, r := range [][]string{
		{"GET", "/photos?list-type=2", ""}, {"GET", "/photos?prefix=2025/", ""}, {"GET", "/other", ""}, {"GET", "/photos?uploads", ""},
		{"GET", "/photos?policy", ""}, {"GET", "/photos?acl", ""}, {"GET", "/photos/2026/cat?acl", ""},
		{"PUT", "/photos/2026/cat?tagging", "<Tagging><TagSet></TagSet></Tagging>"}, {"PUT", "/photos?acl", ""},
		{"PUT", "/photos?policy", `{"Statement":[{"Effect":"Allow","Principal":"*","Action":"s3:*","Resource":"arn:aws:s3:::photos/*"}]}`},
		{"POST", "/photos/2026/new?uploads", ""}, {"PUT", "/mine", ""}, {"DELETE", "/photos", ""},
	} {
		refused(t, r[0]+" "+r[1])(tv.s3(t, s, r[0], r[1], r[2], "X-Amz-Acl", "public-read"))
	}
	tv.s3(t, s, "POST", "/photos?delete", "<Delete><Object><Key>2026/cat</Key></Object></Delete>") // answers key by key
	refused(t, "copy out")(tv.s3(t, s, "PUT", "/other/copy", "", "X-Amz-Copy-Source", "/photos/2026/cat"))
	if status, body := root.s3(t, s, "GET", "/photos/2026/cat", ""); status != http.StatusOK || body != "of /photos/2026/cat" {
		t.Errorf("the object is not what it was: %d %s", status, body)
	}
	// Nobody chose the modes: the default ones let others read, and nobody write.
	mnt := s.Mount("-o", "allow_other")
	s.Command("chmod", "755", filepath.Dir(mnt))
	posix := func(name string, args ...string) error {
		cmd := exec.Command(name, args...)
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(tv.uid), Gid: uint32(tv.uid)}}
		return cmd.Run()
	}
	old := filepath.Join(mnt, "photos/2025/cat")
	if err := posix("cat", old); err != nil {
		t.Errorf("a mode that lets all read: %v", err)
	}
	if posix("touch", old) == nil || posix("rm", "-f", old) == nil || posix("touch", filepath.Join(mnt, "photos/2026/new")) == nil {
		t.Error("the reader writes through a mount")
	}
	s.Command("chmod", "600", old)
	if posix("cat", old) == nil {
		t.Error("a mode that lets the owner alone read")
	}
	s.Command("chmod", "600", filepath.Join(mnt, "photos/2026/cat"))
	refused(t, "what a chosen mode denies")(tv.s3(t, s, "GET", "/photos/2026/cat", ""))
}

// doors are how a person sends a request.
func doors(p person) map[string]func(t *testing.T, s *testenv.Server, method, target, body string, headers ...string) (int, string) {
	return map[string]func(t *testing.T, s *testenv.Server, method, target, body string, headers ...string) (int, string){"s3": p.s3, "rest": p.rest}
}
