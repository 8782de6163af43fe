package libnfs

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// export is what ogw export prints as JSON.
type export struct {
	ID, Path, Secret string
}

// TestExports adds and revokes exports of a running gateway and looks with
// libnfs at who may mount what.
func TestExports(t *testing.T) {
	nfs, rest, ogw := serveExport(t, "path = \"/public\"\nread_only = true\n")
	for _, path := range []string{"/public/a", "/private/b", "/private/sub/c"} {
		q, err := http.NewRequest(http.MethodPut, rest(path), strings.NewReader("text of "+path))
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(q)
		if err != nil || res.StatusCode/100 != 2 {
			t.Fatalf("PUT: %v %v", res, err)
		}
		res.Body.Close()
	}
	lists := func(path string) bool {
		_, err := exec.Command("nfs-ls", nfs(path)).CombinedOutput()
		return err == nil
	}
	add := func(args ...string) (e export) {
		t.Helper()
		out, err := ogw(append([]string{"export", "add", "--json"}, args...)...)
		if err != nil || json.Unmarshal([]byte(out), &e) != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return e
	}
	if !lists("/public") || lists("/private") || lists("/private@x") {
		t.Fatal("the configured export alone must be there")
	}
	// A flag stands before the argument, as everywhere.
	secret := add("--secret", "--squash", "none", "/private")
	if lists("/private") || lists("/private@"+secret.Secret+"x") || !lists("/private@"+secret.Secret) || !lists("/private/sub@"+secret.Secret) {
		t.Error("with the secret, and only with it")
	}
	elsewhere := add("--client", "192.0.2.0/24", "/private")
	if lists("/private") {
		t.Error("exported to other clients")
	}
	local := add("--client", "127.0.0.1", "--read-only", "--squash", "none", "/private")
	if !lists("/private") {
		t.Error("exported to this client")
	}

	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("new"), 0o644); err != nil {
		t.Fatal(err)
	}
	put := func(at string) error { return exec.Command("nfs-cp", file, nfs(at)).Run() }
	if put("/private/new") == nil {
		t.Error("written through a read-only export")
	}

	out, err := ogw("export", "list")
	if err != nil || strings.Contains(out, secret.Secret) {
		t.Errorf("%v\n%s", err, out)
	}
	for _, want := range []string{secret.ID, elsewhere.ID, local.ID, "/public", "192.0.2.0/24", "secret", "ro,"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	for _, id := range []string{local.ID, secret.ID} {
		if out, err := ogw("export", "revoke", id); err != nil {
			t.Fatal(out)
		}
	}
	if lists("/private") || lists("/private@"+secret.Secret) || !lists("/public") {
		t.Error("revoked exports can be mounted, or others cannot")
	}
	if out, err := ogw("export", "revoke", local.ID); err == nil {
		t.Errorf("revoked twice: %s", out)
	}

	short := add("--secret", "--expires", "2s", "/private")
	if !lists("/private@" + short.Secret) {
		t.Error("not there before it expires")
	}
	for end := time.Now().Add(10 * time.Second); lists("/private@" + short.Secret); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("still there after it expired")
		}
	}
	for _, bad := range [][]string{
		{"/private"}, {"--secret", "private"}, {"--secret", "/nowhere"}, {"--secret", "/private/b"}, {"--client", "all", "/private"},
		{"--secret", "--squash", "some", "/private"}, {"--secret", "--expires", "yesterday", "/private"},
		{"--secret", "--expires", "2001-01-01T00:00:00Z", "/private"}, {"--secret"},
	} {
		if out, err := ogw(append([]string{"export", "add"}, bad...)...); err == nil || bytes.Contains([]byte(out), []byte("panic")) {
			t.Errorf("%v: %v %s", bad, err, out)
		}
	}
}
