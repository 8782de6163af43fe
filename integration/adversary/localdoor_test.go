package adversary

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ogw/integration/testenv"
)

// curlAs makes a request as a local user and returns the status and the body.
func curlAs(t *testing.T, uid uint32, url string, args ...string) (status, body string) {
	t.Helper()
	out, err := asUser(t, uid, uid, "curl", append([]string{"-sS", "--max-time", "10", "-w", "\n%{http_code}", url}, args...)...)
	if err != nil {
		t.Fatalf("curl %s: %v: %s", url, err, out)
	}
	i := strings.LastIndexByte(out, '\n')
	return out[i+1:], out[:i]
}

// TestLocalUsersOverREST: the door that asks nobody for a token gives another
// local user what is theirs, and not what is root's.
func TestLocalUsersOverREST(t *testing.T) {
	attackOpenDoor(t, newServer(t, testenv.ServerOptions{}))
}

// TestLocalUsersAtSocket: the same door at a Unix socket.
func TestLocalUsersAtSocket(t *testing.T) {
	socket := filepath.Join(openFolder(t), "rest.sock")
	s := newServer(t, testenv.ServerOptions{
		Extra: "[[gateway]]\nprotocol = \"rest\"\nname = \"local\"\nlisten = \"unix:" + socket + "\"\n"})
	attackOpenDoor(t, s, "--unix-socket", socket)
}

func attackOpenDoor(t *testing.T, s *testenv.Server, via ...string) {
	t.Helper()
	mnt := s.Mount()
	for dir, uid := range map[string]int{"roots": 0, "strangers": strangerUID} {
		dir = filepath.Join(mnt, dir)
		file := filepath.Join(dir, "private")
		err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(file, []byte("of "+filepath.Base(dir)), 0o600),
			os.Chown(file, uid, uid), os.Chown(dir, uid, uid))
		if err != nil {
			t.Fatal(err)
		}
	}
	put := filepath.Join(openFolder(t), "put")
	if err := os.WriteFile(put, []byte("new"), 0o644); err != nil {
		t.Fatal(err)
	}
	do := func(uid uint32, path string, args ...string) (string, string) {
		return curlAs(t, uid, "http://"+s.REST+path, append(args, via...)...)
	}
	if status, body := do(0, "/roots/private"); status != "200" || body != "of roots" {
		t.Errorf("root is refused: %s %s", status, body)
	}
	if status, body := do(strangerUID, "/strangers/private"); status != "200" || body != "of strangers" {
		t.Errorf("another user is refused what is theirs: %s %s", status, body)
	}
	if status, body := do(strangerUID, "/strangers/new", "-T", put); status != "201" && status != "204" {
		t.Errorf("another user cannot write where they may: %s %s", status, body)
	}
	if info, err := os.Stat(filepath.Join(mnt, "strangers/new")); err != nil || info.Sys().(*syscall.Stat_t).Uid != strangerUID {
		t.Errorf("what they wrote is not theirs: %v", err)
	}
	for _, c := range []struct{ path, method string }{
		{"/roots/private", "GET"}, {"/roots/private", "DELETE"}, {"/", "DELETE"},
	} {
		if status, body := do(strangerUID, c.path, "-X", c.method); status != "403" {
			t.Errorf("another user: %s %s: %s %s", c.method, c.path, status, body)
		}
	}
	for _, path := range []string{"/roots/private", "/roots/new", "/new", "/new-bucket/x"} {
		if status, body := do(strangerUID, path, "-T", put); status != "403" {
			t.Errorf("another user: PUT %s: %s %s", path, status, body)
		}
	}
}

// TestClosedEndOverREST: a program that closes its end before the server looks
// is nobody: of such an end the kernel says uid 0. What it sent is not done.
func TestClosedEndOverREST(t *testing.T) {
	s := newServer(t, testenv.ServerOptions{})
	host, port, err := net.SplitHostPort(s.REST)
	if err != nil {
		t.Fatal(err)
	}
	// Many at once, so that some are closed when they are accepted.
	script := `for i in $(seq 200); do
	exec 3<>/dev/tcp/` + host + "/" + port + ` && printf 'PUT /b/%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx' $i >&3
	exec 3>&-
done 2>/dev/null`
	if out, err := asUser(t, strangerUID, strangerGID, "bash", "-c", script); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s.Stop() // drains: what was sent was served
	s.Start()
	if status, body := curlAs(t, 0, "http://"+s.REST+"/b/", "-H", "Accept: application/json"); status != "404" {
		t.Errorf("a closed end wrote as root: %s %s", status, body)
	}
}
