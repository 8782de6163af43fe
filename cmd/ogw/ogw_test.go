package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"ogw/cmd/ogw/server"
	"ogw/httpapi/admin"
)

// endLimit is how long a process that has nothing to drain may take to end.
const endLimit = 20 * time.Second

func TestFirstStartAndRestart(t *testing.T) {
	w := newWorld(t)
	d := w.serve(anyPort...)
	if !d.said.First || d.said.AccessKey != "" || d.said.SecretKey != "" || d.said.Dir != filepath.Join(w.dir, "ogw-data") || len(d.said.Gateways) != 3 {
		t.Fatalf("%+v", d.said)
	}
	key, err := readCredentials(d.said.Credentials)
	if err != nil {
		t.Errorf("credentials: %v", err)
	}
	for _, name := range []string{server.CredentialsName, admin.SocketName} {
		if info, err := os.Stat(w.data(name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", name, info, err)
		}
	}
	if info, err := os.Stat(w.data("")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("data folder: %v %v", info.Mode(), err)
	}
	if strings.Contains(d.stderr.String(), key.Secret) {
		t.Error("the log holds the secret")
	}
	d.put("/photos/a", "hello")
	d.signal(syscall.SIGINT)
	if code := d.wait(endLimit); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if _, err := os.Stat(w.data(admin.SocketName)); !os.IsNotExist(err) {
		t.Errorf("the socket is left: %v", err)
	}

	d2 := w.serve(anyPort...)
	if d2.said.First || d2.said.AccessKey != "" || d2.said.SecretKey != "" {
		t.Error("the second start says that it is the first")
	}
	if got := d2.get("/photos/a"); got != "hello" {
		t.Errorf("%q", got)
	}
	var users []admin.User
	w.json(&users, "user", "list")
	if len(users) != 1 || users[0].Name != "root" || users[0].Keys[0].ID != key.ID || users[0].UID != uint32(os.Getuid()) {
		t.Errorf("%+v", users)
	}
}

// A start that died between the file and the user goes on with the file.
func TestCredentialsAfterCrash(t *testing.T) {
	w := newWorld(t)
	if err := os.Mkdir(w.data(""), 0o700); err != nil {
		t.Fatal(err)
	}
	w.write("ogw-data/credentials", "[default]\naws_access_key_id = AKOFCRASH\naws_secret_access_key = secret-of-crash\n")
	d := w.serve(anyPort...)
	if key, err := readCredentials(d.said.Credentials); err != nil || key.ID != "AKOFCRASH" || key.Secret != "secret-of-crash" || !d.said.First {
		t.Errorf("%+v %+v %v", d.said, key, err)
	}
	w2 := newWorld(t)
	if err := os.Mkdir(w2.data(""), 0o700); err != nil {
		t.Fatal(err)
	}
	w2.write("ogw-data/credentials", "nonsense")
	if _, errs, code := w2.ogw(append([]string{"serve"}, anyPort...)...); code != exitFailure || !strings.Contains(errs, "no access key") {
		t.Errorf("%d %s", code, errs)
	}
}

func TestKill(t *testing.T) {
	w := newWorld(t)
	d := w.serve(anyPort...)
	var mu sync.Mutex
	acknowledged := map[string]string{}
	var wait sync.WaitGroup
	stop := make(chan struct{})
	for c := range 4 {
		wait.Go(func() {
			for i := 0; ; i++ {
				path, body := fmt.Sprintf("/b/%d/%d", c, i), strings.Repeat(fmt.Sprint(i), 1+i*97%40000)
				r, _ := http.NewRequest("PUT", d.url("rest")+path, strings.NewReader(body))
				resp, err := http.DefaultClient.Do(r)
				if err != nil {
					return // killed
				}
				resp.Body.Close()
				if resp.StatusCode == 201 {
					mu.Lock()
					acknowledged[path] = body
					mu.Unlock()
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	time.Sleep(700 * time.Millisecond)
	d.signal(syscall.SIGKILL)
	close(stop)
	wait.Wait()
	d.wait(endLimit)
	if len(acknowledged) < 20 {
		t.Fatalf("only %d writes before the kill", len(acknowledged))
	}
	begin := time.Now()
	d2 := w.serve(anyPort...)
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("restart took %v", took)
	}
	for path, body := range acknowledged {
		if got := d2.get(path); got != body {
			t.Fatalf("%s: %d bytes, want %d", path, len(got), len(body))
		}
	}
	t.Logf("%d acknowledged writes are there", len(acknowledged))
	var report admin.CheckReport
	w.json(&report, "check", "--data")
	if !report.Clean || report.Files < int64(len(acknowledged)) {
		t.Errorf("check after the kill: %+v", report)
	}
}

func TestFolderInUse(t *testing.T) {
	w := newWorld(t)
	d := w.serve(anyPort...)
	_, errs, code := w.ogw(append([]string{"serve"}, anyPort...)...)
	if code != exitInUse || !strings.Contains(errs, "in use") || !strings.Contains(errs, fmt.Sprint(d.cmd.Process.Pid)) {
		t.Errorf("%d %s", code, errs)
	}
	if got := w.ok("status"); !strings.Contains(got, fmt.Sprint(d.cmd.Process.Pid)) || !strings.Contains(got, "rest on 127.0.0.1:") {
		t.Errorf("%s", got)
	}
}

func TestNewerFormat(t *testing.T) {
	w := newWorld(t)
	d := w.serve(anyPort...)
	d.signal(syscall.SIGTERM)
	d.wait(endLimit)
	b, err := os.ReadFile(w.data("FORMAT"))
	if err != nil {
		t.Fatal(err)
	}
	newer := strings.Replace(string(b), "1", "999", 1)
	if newer == string(b) {
		t.Fatalf("no version in %q", b)
	}
	w.write("ogw-data/FORMAT", newer)
	for _, args := range [][]string{append([]string{"serve"}, anyPort...), {"user", "list"}} {
		if _, errs, code := w.ogw(args...); code != exitFailure || !strings.Contains(errs, "format") || !strings.Contains(errs, "999") {
			t.Errorf("%v: %d %s", args, code, errs)
		}
	}
}

func TestForeignFolder(t *testing.T) {
	w := newWorld(t)
	if err := os.MkdirAll(w.data("holiday"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := w.ogw(append([]string{"serve"}, anyPort...)...); code != exitFailure || !strings.Contains(errs, "holiday") {
		t.Errorf("%d %s", code, errs)
	}
	w.write("file", "x")
	if _, errs, code := w.ogw("serve", "--dir", "file"); code != exitFailure || !strings.Contains(errs, "not a folder") {
		t.Errorf("%d %s", code, errs)
	}
}

// TestNoStore: a command takes the folder of a disk that is not mounted for no
// store, and leaves it as it is.
func TestNoStore(t *testing.T) {
	w := newWorld(t)
	to := w.newStoreIn("new")
	for name, fill := range map[string]func(){
		"empty": func() {},
		"other": func() { w.write("ogw-data/unrelated", "x") },
	} {
		if err := os.MkdirAll(w.data(""), 0o700); err != nil {
			t.Fatal(err)
		}
		fill()
		before, err := os.ReadDir(w.data(""))
		if err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{
			{"check"}, {"status"}, {"user", "add", "bob"}, {"bucket", "add", "b"}, {"backup", w.dir + "/backup", "--without-secrets"},
			{"migrate", "--to", to}, {"migrate", "--undo"},
		} {
			if out, errs, code := w.ogw(args...); code != exitNotFound || !strings.Contains(errs, "there is no store") || out != "" {
				t.Errorf("%s: %v: %d %s%s", name, args, code, out, errs)
			}
		}
		if after, err := os.ReadDir(w.data("")); err != nil || len(after) != len(before) {
			t.Errorf("%s: %v, %v in place of %v", name, err, after, before)
		}
	}
	d := w.serve(anyPort...) // with a file of somebody in it, as ever
	if _, err := readCredentials(d.said.Credentials); err != nil {
		t.Error(err)
	}
}

// A request in flight ends well while the process drains.
func TestDrain(t *testing.T) {
	w := newWorld(t)
	d := w.serve(append(anyPort, "--set", "server.drain=20s")...)
	pr, pw := io.Pipe()
	result := make(chan string, 1)
	go func() {
		r, _ := http.NewRequest("PUT", d.url("rest")+"/b/slow", pr)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			result <- err.Error()
			return
		}
		resp.Body.Close()
		result <- resp.Status
	}()
	if _, err := io.WriteString(pw, "first half, "); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	d.signal(syscall.SIGTERM)
	time.Sleep(300 * time.Millisecond)
	if _, err := http.Get(d.url("rest") + "/b/slow"); err == nil {
		t.Error("new connections are taken while draining")
	}
	_, _ = io.WriteString(pw, "second half")
	_ = pw.Close()
	if got := <-result; got != "201 Created" {
		t.Errorf("the request in flight: %s", got)
	}
	if code := d.wait(endLimit); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if got := w.serve(anyPort...).get("/b/slow"); got != "first half, second half" {
		t.Errorf("%q", got)
	}
}

// hang begins an upload that never ends.
func hang(t *testing.T, d *daemon) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(d.url("rest"), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, "PUT /b/hang HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nabc"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	return conn
}

func TestDrainIsBounded(t *testing.T) {
	w := newWorld(t)
	d := w.serve(append(anyPort, "--set", "server.drain=500ms")...)
	hang(t, d)
	d.signal(syscall.SIGTERM)
	if code := d.wait(endLimit); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(d.stderr.String(), "cut off") {
		t.Errorf("the log does not tell: %s", d.stderr)
	}
	if status, _ := w.serve(anyPort...).http("GET", w.serveURL("/b/hang"), ""); status != 404 {
		t.Errorf("half an object: %d", status)
	}
}

// serveURL returns the REST address of the process that runs now.
func (w *world) serveURL(path string) string {
	w.t.Helper()
	var st admin.Status
	w.json(&st, "status")
	for _, g := range st.Gateways {
		if g.Protocol == "rest" {
			return "http://" + g.Listen + path
		}
	}
	w.t.Fatal("no REST gateway")
	return ""
}

func TestSecondSignal(t *testing.T) {
	w := newWorld(t)
	d := w.serve(append(anyPort, "--set", "server.drain=10m")...)
	d.put("/b/kept", "kept")
	hang(t, d)
	d.signal(syscall.SIGINT)
	for end := time.Now().Add(endLimit); !strings.Contains(d.stderr.String(), "once more to stop at once"); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the first signal is not heard")
		}
	}
	// timeout(1) sends a second one to the group of the process.
	d.signal(syscall.SIGINT)
	time.Sleep(3 * signalEcho)
	if strings.Contains(d.stderr.String(), "stopped at once") {
		t.Error("an echo of the first signal is taken for a second")
	}
	d.signal(syscall.SIGINT)
	if code := d.wait(5 * time.Second); code != exitFailure {
		t.Errorf("exit code %d", code)
	}
	if got := w.serve(anyPort...).get("/b/kept"); got != "kept" {
		t.Errorf("%q", got)
	}
}

func TestStop(t *testing.T) {
	w := newWorld(t)
	d := w.serve(anyPort...)
	if got := w.ok("stop"); !strings.Contains(got, fmt.Sprint(d.cmd.Process.Pid)) {
		t.Errorf("%s", got)
	}
	if code := d.wait(endLimit); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if _, errs, code := w.ogw("stop"); code != exitFailure || !strings.Contains(errs, "no process") {
		t.Errorf("%d %s", code, errs)
	}
}

// A port that somebody asked for does not move when it is taken: clients would meet
// whoever has it.
func TestPortTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().String()
	w := newWorld(t)
	w.write("ogw.toml", "[[gateway]]\nprotocol = \"rest\"\nlisten = \""+taken+"\"\n")
	others := []string{"serve", "--s3", "off", "--nfs", "off"}
	for name, c := range map[string]struct {
		env  []string
		args []string
	}{
		"file":        {args: []string{"serve", "-c", "ogw.toml"}},
		"flag":        {args: append(others, "--rest", taken)},
		"environment": {env: []string{"OGW_REST_LISTEN=" + taken}, args: others},
	} {
		w.env = c.env
		_, errs, code := w.ogw(c.args...)
		if code != exitFailure || !strings.Contains(errs, taken) || !strings.Contains(errs, "another process") || !strings.Contains(errs, "--rest") {
			t.Errorf("%s: %d %s", name, code, errs)
		}
		if _, err := os.Stat(w.data(admin.SocketName)); !os.IsNotExist(err) {
			t.Errorf("%s: left behind: %v", name, err)
		}
	}
}

func TestMetricsAndProbes(t *testing.T) {
	w := newWorld(t)
	w.write("ogw.toml", "[admin]\nlisten = \"127.0.0.1:0\"\ntoken = \"a-long-admin-token\"\n[log]\naccess = true\nformat = \"json\"\n"+
		"[[gateway]]\nprotocol = \"rest\"\nlisten = \"127.0.0.1:0\"\n[[gateway]]\nprotocol = \"embed\"\n[[gateway]]\nprotocol = \"nfs\"\nlisten = \"127.0.0.1:0\"\n")
	d := w.serve("--config", "ogw.toml")
	d.put("/b/x", "hello")
	d.get("/b/x")
	w.ok("status", "-c", "ogw.toml")
	c := http.Client{Transport: socketTransport(w.data(admin.SocketName))}
	for path, want := range map[string]string{
		"/metrics": `ogw_http_requests_total{gateway="rest",operation="GET",status="200"} 1`,
		"/healthz": "alive", "/readyz": "ready",
	} {
		resp, err := c.Get("http://ogw" + path)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != 200 || !strings.Contains(string(b), want) {
			t.Errorf("%s: %s without %s:\n%s", path, resp.Status, want, b)
		}
		if path == "/metrics" {
			problems, err := promlint.New(bytes.NewReader(b)).Lint()
			if err != nil {
				t.Errorf("the metrics are not valid: %v", err)
			}
			for _, p := range problems {
				if strings.HasPrefix(p.Metric, "ogw_") {
					t.Errorf("metric %s: %s", p.Metric, p.Text)
				}
			}
			for _, name := range []string{`ogw_http_requests_total{gateway="admin",operation="Status",status="200"}`, "ogw_cluster_seconds_bucket", "ogw_store_bytes", "ogw_nfs_clients", "ogw_build_info", "go_goroutines", "process_resident_memory_bytes"} {
				if !strings.Contains(string(b), "\n"+name) {
					t.Errorf("no metric %s", name)
				}
			}
		}
	}
	log := d.stderr.String()
	for _, want := range []string{`"door":"rest"`, `"op":"PUT"`, `"path":"/b/x"`, `"identity":"uid:`, `"request":"`, `"took":`} {
		if !strings.Contains(log, want) {
			t.Errorf("the access log has no %s: %s", want, log)
		}
	}
}

func socketTransport(path string) http.RoundTripper {
	return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}
}
