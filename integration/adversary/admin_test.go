package adversary

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

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

// TestAdminSocketOfOthers: neither the admin socket nor those of the processes that keep
// mounts take another local user, also where the data folder can be entered.
func TestAdminSocketOfOthers(t *testing.T) {
	data := openFolder(t)
	s := newServer(t, testenv.ServerOptions{Data: data})
	s.Mount()
	out, err := asUser(t, 0, 0, "find", data, "-type", "s")
	if err != nil {
		t.Fatal(err)
	}
	sockets := strings.Fields(out)
	if len(sockets) == 0 || !strings.Contains(out, filepath.Join(data, "admin.sock")) {
		t.Fatalf("sockets: %q", sockets)
	}
	for _, socket := range sockets {
		if out, err := asUser(t, strangerUID, strangerGID, "curl", "-sS", "--max-time", "5", "--unix-socket", socket, "http://ogw/v1/users"); err == nil {
			t.Errorf("another user talks to %s: %s", socket, out)
		}
	}
}
