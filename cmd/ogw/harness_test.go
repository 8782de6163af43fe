package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// binary is what TestMain built.
var binary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "ogw-cmd-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "ogw")
		if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%v: %s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// world is a folder in which the binary runs.
type world struct {
	t   *testing.T
	dir string // working folder
	env []string
}

func newWorld(t *testing.T) *world { return &world{t: t, dir: t.TempDir()} }

// data returns the path of a file in the data folder.
func (w *world) data(name string) string { return filepath.Join(w.dir, "ogw-data", name) }

func (w *world) command(args ...string) *exec.Cmd {
	c := exec.Command(binary, args...)
	c.Dir = w.dir
	c.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir}, w.env...)
	return c
}

// ogw runs a command line to its end.
func (w *world) ogw(args ...string) (stdout, stderr string, code int) {
	w.t.Helper()
	var out, errs bytes.Buffer
	c := w.command(args...)
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatalf("ogw %v: %v", args, err)
	}
	return out.String(), errs.String(), c.ProcessState.ExitCode()
}

// ok runs a command line that must succeed, and returns what it printed.
func (w *world) ok(args ...string) string {
	w.t.Helper()
	out, errs, code := w.ogw(args...)
	if code != 0 {
		w.t.Fatalf("ogw %v: exit code %d\n%s%s", args, code, out, errs)
	}
	return out
}

// json runs a command line with --json and decodes what it printed.
func (w *world) json(into any, args ...string) {
	w.t.Helper()
	out := w.ok(append(args, "--json")...)
	if err := json.Unmarshal([]byte(out), into); err != nil {
		w.t.Fatalf("ogw %v: %v in %s", args, err, out)
	}
}

// daemon is a running ogw serve.
type daemon struct {
	*world
	cmd    *exec.Cmd
	said   announcement
	stderr logFile
	ended  chan struct{}
}

// logFile takes what a process says: it has all of it that the process wrote
// before it did anything that a test waits for.
type logFile string

func (l logFile) String() string {
	b, err := os.ReadFile(string(l))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// anyPort makes every default gateway listen at a free port.
var anyPort = []string{"--s3", "127.0.0.1:0", "--rest", "127.0.0.1:0", "--nfs", "127.0.0.1:0"}

// serve starts ogw serve and waits until it listens.
func (w *world) serve(args ...string) *daemon {
	w.t.Helper()
	log, err := os.CreateTemp(w.t.TempDir(), "log")
	if err != nil {
		w.t.Fatal(err)
	}
	defer log.Close()
	d := &daemon{world: w, stderr: logFile(log.Name()), ended: make(chan struct{})}
	d.cmd = w.command(append([]string{"serve", "--json"}, args...)...)
	d.cmd.Stderr = log
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = d.cmd.Process.Kill()
		<-d.ended
		if w.t.Failed() {
			w.t.Logf("log of the process:\n%s", d.stderr)
		}
	})
	err = json.NewDecoder(out).Decode(&d.said)
	go func() {
		_, _ = io.Copy(io.Discard, out)
		_ = d.cmd.Wait()
		close(d.ended)
	}()
	if err != nil {
		<-d.ended
		w.t.Fatalf("ogw serve %v: %v\n%s", args, err, d.stderr)
	}
	return d
}

// url returns the address of the gateway of a protocol.
func (d *daemon) url(protocol string) string {
	for _, g := range d.said.Gateways {
		if g.Protocol == protocol {
			return "http://" + g.Listen
		}
	}
	d.t.Fatalf("no gateway for %s: %+v", protocol, d.said.Gateways)
	return ""
}

// wait returns the exit code, or fails if the process does not end.
func (d *daemon) wait(limit time.Duration) int {
	d.t.Helper()
	select {
	case <-d.ended:
		return d.cmd.ProcessState.ExitCode()
	case <-time.After(limit):
		d.t.Fatalf("the process still runs after %v", limit)
		return -1
	}
}

func (d *daemon) signal(s syscall.Signal) {
	d.t.Helper()
	if err := d.cmd.Process.Signal(s); err != nil {
		d.t.Fatal(err)
	}
}

// put stores an object over REST.
func (d *daemon) put(path, body string) {
	d.t.Helper()
	if status, answer := d.http("PUT", d.url("rest")+path, body); status != 201 && status != 204 {
		d.t.Fatalf("PUT %s: %d %s", path, status, answer)
	}
}

// get fetches an object over REST.
func (d *daemon) get(path string) string {
	d.t.Helper()
	status, body := d.http("GET", d.url("rest")+path, "")
	if status != 200 {
		d.t.Fatalf("GET %s: %d %s", path, status, body)
	}
	return body
}

func (d *daemon) http(method, url, body string) (int, string) {
	d.t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func (w *world) write(name, text string) string {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// accessKey is what the file with root's key has.
type accessKey struct{ ID, Secret string }

func readCredentials(file string) (key accessKey, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return key, err
	}
	_, err = fmt.Sscanf(string(b[bytes.IndexByte(b, '[')+1:]), "default]\naws_access_key_id = %s\naws_secret_access_key = %s\n", &key.ID, &key.Secret)
	return key, err
}
