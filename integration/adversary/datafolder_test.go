package adversary

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ogw/integration/testenv"
)

// A local user who is nobody to the server.
const (
	strangerUID = 54321
	strangerGID = 54321
)

// asUser runs a program as a local user, and returns what it printed to its
// standard output.
func asUser(t *testing.T, uid, gid uint32, name string, args ...string) (string, error) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: another user's programs are run")
	}
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = "/", []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: gid}}
	out, err := cmd.Output()
	return string(out), err
}

// openFolder returns a new folder that every local user may enter.
func openFolder(t *testing.T) string {
	t.Helper()
	dir := testenv.TempDir(t)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestDataFolderOfMode0755: a data folder that the operator made, with the
// usual mode, and a server with the widest umask. Another user reads neither
// keys nor contents, and talks to no socket.
func TestDataFolderOfMode0755(t *testing.T) {
	data := openFolder(t)
	old := syscall.Umask(0)
	s := newServer(t, testenv.ServerOptions{Data: data})
	syscall.Umask(old)
	const content = "a small content, kept in the metadata"
	file := filepath.Join(s.Dir, "content")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	s.OGW("bucket", "add", "private")
	s.AWS("s3", "cp", file, "s3://private/x")

	if out, err := asUser(t, strangerUID, strangerGID, "ls", data); err != nil {
		t.Fatalf("the attacker cannot even enter: %v: %s", err, out)
	}
	if out, _ := asUser(t, strangerUID, strangerGID, "find", data, "-mindepth", "1", "(", "-readable", "-o", "-writable", ")"); out != "" {
		t.Errorf("another user can use\n%s", out)
	}
	for _, secret := range []string{s.Secret, content} {
		if out, _ := asUser(t, strangerUID, strangerGID, "grep", "-rlaF", "-e", secret, data); out != "" {
			t.Errorf("another user finds %q in\n%s", secret, out)
		}
	}
	if out, err := asUser(t, strangerUID, strangerGID, "curl", "-sS", "--max-time", "5",
		"--unix-socket", filepath.Join(data, "admin.sock"), "http://ogw/v1/users"); err == nil {
		t.Errorf("another user talks to the admin socket: %s", out)
	}
}

// storeIn makes a store in a data folder.
func storeIn(t *testing.T, data string) {
	t.Helper()
	newServer(t, testenv.ServerOptions{Data: data}).Stop()
}

// TestDataFolderOfOthers: where others may write, they could put a store of
// their own in place; the server does not start.
func TestDataFolderOfOthers(t *testing.T) {
	data := openFolder(t)
	storeIn(t, data)
	if err := os.Chmod(data, 0o777); err != nil {
		t.Fatal(err)
	}
	out, err := testenv.Output("/", os.Environ(), binary, "bucket", "list", "--dir", data)
	if err == nil || !strings.Contains(out, "chmod go-w "+data) {
		t.Errorf("a data folder of mode 0777: %v: %s", err, out)
	}
}
