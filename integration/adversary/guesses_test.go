package adversary

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ogw/integration/testenv"
	"ogw/integration/testenv/nfsclient"
)

// tried is how many of 300 guesses a door may look at: the free ones, and
// what the pauses let through while the test runs.
const tried = 150

// guess makes 300 requests from an address of this machine and returns how
// many were answered with the status of a wrong one.
func guess(t *testing.T, from string, wrong int, request func(i int) *http.Request) (n int) {
	t.Helper()
	c := clientFrom(from)
	defer c.CloseIdleConnections()
	for i := range 300 {
		resp, err := c.Do(request(i))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		switch resp.StatusCode {
		case wrong:
			n++
		case http.StatusTooManyRequests, http.StatusServiceUnavailable:
			if resp.Header.Get("Retry-After") == "" {
				t.Errorf("no Retry-After in %v", resp.Header)
			}
		default:
			t.Fatalf("guess %d: %s", i, resp.Status)
		}
	}
	return n
}

// clientFrom returns a client with an address of its own on loopback.
func clientFrom(address string) *http.Client {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	return &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext}, Timeout: 30 * time.Second}
}

// Passwords, tokens and signatures cannot be tried at the speed of the
// machine, and who is somewhere else notices nothing.
func TestGuesses(t *testing.T) {
	const token = "0123456789abcdef"
	admin := testenv.FreeAddr(t)
	s := newServer(t, testenv.ServerOptions{REST: "users = true\ntokens = [\"fedcba9876543210\"]",
		Extra: fmt.Sprintf("[admin]\nlisten = %q\ntoken = %q\n", admin, token)})
	alice := newPerson(t, s, "alice")
	get := func(url, header, value string) *http.Request {
		r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(header, value)
		return r
	}
	rest, status := "http://"+s.REST+"/", "http://"+admin+"/v1/status"
	for i, c := range []struct {
		name    string
		wrong   int
		request func(i int) *http.Request
		right   *http.Request
	}{
		{"password", 401, func(i int) *http.Request {
			r := get(rest, "X", "")
			r.SetBasicAuth("alice", fmt.Sprint("guess", i))
			return r
		}, get(rest, "Authorization", "Bearer fedcba9876543210")},
		{"token", 401, func(i int) *http.Request {
			return get(rest, "Authorization", fmt.Sprintf("Bearer fedcba987654%04d", i))
		}, get(rest, "Authorization", "Bearer fedcba9876543210")},
		{"admin token", 401, func(i int) *http.Request {
			return get(status, "Authorization", fmt.Sprintf("Bearer 0123456789ab%04d", i))
		}, get(status, "Authorization", "Bearer "+token)},
		{"signature", 403, func(i int) *http.Request {
			return person{key: alice.key, secret: fmt.Sprint("guess", i)}.s3Request(t, s, "GET", "/", "")
		}, alice.s3Request(t, s, "GET", "/", "")},
	} {
		mallory := fmt.Sprintf("127.0.1.%d", i+1)
		if n := guess(t, mallory, c.wrong, c.request); n > tried {
			t.Errorf("%s: %d of 300 guesses were looked at", c.name, n)
		}
		resp, err := clientFrom("127.0.2.1").Do(c.right)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: another address gets %s", c.name, resp.Status)
		}
	}
}

// Secrets of exports cannot be tried so either.
func TestGuessesOfExportSecrets(t *testing.T) {
	const secret = "correct-horse-battery"
	s := newServer(t, testenv.ServerOptions{NFS: "insecure = true\n[[gateway.export]]\npath = \"/hers\"\nsecret = \"" + secret + "\"\n"})
	s.OGW("bucket", "add", "hers")
	from := func(address string) *nfsClient {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
		nc, err := d.Dial("tcp", s.NFS)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
		return &nfsClient{t, nfsclient.NewConn(nc)}
	}
	from("127.0.2.1").mount("/hers@" + secret)
	mallory, looked := from("127.0.1.9"), 0
	for i := range 300 {
		switch st, _, err := mallory.Mnt(fmt.Sprintf("/hers@guess%011d", i)); {
		case err != nil:
			t.Fatal(err)
		case st == nfsclient.NoEnt:
			looked++
		case st != nfsclient.Acces:
			t.Fatalf("guess %d: status %d", i, st)
		}
	}
	if looked > tried {
		t.Errorf("%d of 300 guesses were looked at", looked)
	}
	if st, _, err := mallory.Mnt("/hers@" + secret); err != nil || st != nfsclient.Acces {
		t.Errorf("a guess in the pause is looked at: %d %v", st, err)
	}
	from("127.0.2.2").mount("/hers@" + secret)
}

// Nobody gets to send the operator's token over a network in clear.
func TestAdminInClear(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ogw.toml")
	text := "[admin]\nlisten = \"0.0.0.0:9090\"\ntoken = \"0123456789abcdef\"\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	if out, err := testenv.Output("", env, binary, "config", "test", file); err == nil || !strings.Contains(out, "in clear") {
		t.Errorf("a listener without TLS: %v %s", err, out)
	}
	// 192.0.2.1 is nobody's: a client that would send the token has to wait.
	out, err := testenv.Output("", append(env, "OGW_ADMIN_TOKEN=0123456789abcdef"), "timeout", "5", binary, "status", "--admin", "http://192.0.2.1:9090")
	if err == nil || !strings.Contains(out, "in clear") {
		t.Errorf("a client without TLS: %v %s", err, out)
	}
}

// What the server prints may end in a journal: root's key is not in it.
func TestRootKeyInJournal(t *testing.T) {
	s := newServer(t, testenv.ServerOptions{})
	if s.Secret == "" {
		t.Fatal("no credentials")
	}
	s.Stop()
	text, err := os.ReadFile(s.LogFile())
	if err != nil || strings.Contains(string(text), s.Secret) {
		t.Errorf("%v: root's secret key is in what the server printed", err)
	}
	audit, err := os.ReadFile(filepath.Join(s.Data, "audit.log"))
	if err == nil && strings.Contains(string(audit), s.Secret) {
		t.Error("root's secret key is in the audit log")
	}
}
