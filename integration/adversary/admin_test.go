package adversary

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ogw/httpapi/admin"
	"ogw/integration/testenv"
)

// openAdmin are the routes of the admin door that anybody may ask, and why.
var openAdmin = map[string]string{
	"GET /healthz": "a probe: tells that the process lives",
	"GET /readyz":  "a probe: tells that the gateways serve",
}

// TestEveryAdminRoute: each route of the admin door at its TCP address, without the
// token, with a wrong one, and with an administrator's keys of S3.
func TestEveryAdminRoute(t *testing.T) {
	const token = "0123456789abcdef"
	addr := testenv.FreeAddr(t)
	s := newServer(t, testenv.ServerOptions{Extra: fmt.Sprintf("[admin]\nlisten = %q\ntoken = %q\n", addr, token)})
	newPerson(t, s, "victim")
	users := s.OGW("user", "list")
	for i, route := range admin.Routes() {
		path := strings.NewReplacer(":name", "victim", ":user", "victim", ":key", "AKIA", ":id", "1", ":kind", "user", ":to", "victim", "*name", "heap").Replace(route.Path)
		c := clientFrom(fmt.Sprintf("127.0.6.%d", i+1)) // each is counted for itself
		for _, give := range []func(r *http.Request){
			func(*http.Request) {},
			func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token[1:]) },
			func(r *http.Request) { r.Header.Set("Authorization", "Bearer ") },
			func(r *http.Request) { r.Header.Set("Authorization", "Basic "+token) },
			func(r *http.Request) { r.SetBasicAuth(s.KeyID, s.Secret) },
			func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+s.Secret) },
		} {
			r, err := http.NewRequestWithContext(context.Background(), route.Method, "http://"+addr+path, strings.NewReader(`{"name":"mallory","all":true}`))
			if err != nil {
				t.Fatal(err)
			}
			give(r)
			resp, err := c.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			key := route.Method + " " + route.Path
			if open := openAdmin[key] != ""; open != (resp.StatusCode == http.StatusOK) || !open && resp.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s with %q: %s", key, r.Header.Get("Authorization"), resp.Status)
			}
		}
		c.CloseIdleConnections()
	}
	if after := s.OGW("user", "list"); after != users {
		t.Errorf("users are\n%swere\n%s", after, users)
	}
	r, _ := http.NewRequest("GET", "http://"+addr+"/v1/status", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	if status, body := send(t, r); status != http.StatusOK {
		t.Errorf("with the token: %d %s", status, body)
	}
}

// TestSocketsOfOthers: neither the admin socket nor those of the processes that keep
// mounts take another local user, also where the data folder can be entered; the latter
// not even where their mode would let that user in.
func TestSocketsOfOthers(t *testing.T) {
	data := openFolder(t)
	s := newServer(t, testenv.ServerOptions{Data: data})
	mnt := filepath.Join(s.Dir, "survives")
	if err := os.Mkdir(mnt, 0o755); err != nil {
		t.Fatal(err)
	}
	s.OGW("mount", "-o", "survive", mnt)
	t.Cleanup(func() { _ = syscall.Unmount(mnt, syscall.MNT_DETACH) }) // where the test ended before
	out, err := asUser(t, 0, 0, "find", data, "-type", "s")
	if err != nil {
		t.Fatal(err)
	}
	sockets := strings.Fields(out)
	if len(sockets) < 2 || !strings.Contains(out, filepath.Join(data, "admin.sock")) {
		t.Fatalf("sockets: %q", sockets)
	}
	for _, socket := range sockets {
		if got := callAs(t, strangerUID, socket); got != "refused" {
			t.Errorf("another user calls %s: %s", socket, got)
		}
		if filepath.Base(socket) == "admin.sock" {
			continue
		}
		s.Kill() // a holder serves one server at a time, and waits now
		for dir := filepath.Dir(socket); dir != data; dir = filepath.Dir(dir) {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(socket, 0o666); err != nil {
			t.Fatal(err)
		}
		if got := callAs(t, strangerUID, socket); got != "closed" {
			t.Errorf("another user calls %s, whose mode allows it: %s", socket, got)
		}
	}
	s.Start() // which the holder serves, as the same user
	s.OGW("umount", mnt)
}

// callVariable has the path of a socket that a process of another user calls.
const callVariable = "OGW_TEST_CALL"

// callAs calls a Unix socket as a local user.
func callAs(t *testing.T, uid uint32, path string) string {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Dir, cmd.Env = "/", []string{callVariable + "=" + path}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("a process of another user: %v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// callSocket reports whether a socket of either type takes a call: "refused", "closed" by
// the other side, or what happened else.
func callSocket(path string) string {
	for _, network := range []string{"unixpacket", "unix"} {
		c, err := net.DialTimeout(network, path, giveUp)
		if errors.Is(err, syscall.EPROTOTYPE) {
			continue
		}
		if err != nil {
			return map[bool]string{true: "refused", false: err.Error()}[errors.Is(err, syscall.EACCES)]
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(giveUp))
		_, _ = c.Write([]byte("GET /v1/users HTTP/1.1\r\nHost: ogw\r\n\r\n"))
		answer := make([]byte, 100)
		n, err := c.Read(answer)
		if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
			return "closed"
		}
		return fmt.Sprintf("%q, %v", answer[:n], err)
	}
	return "of another type"
}
