package main

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"

	"ogw/httpapi/admin"
)

// A key that could not be printed is not taken for one that was; who reads no more
// of a list hears nothing of it.
func TestUnprinted(t *testing.T) {
	w := newWorld(t)
	d := w.serve(anyPort...)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	for _, args := range [][]string{{"user", "add", "bob"}, {"user", "rotate", "bob"}, {"export", "add", "/", "--client", "10.0.0.0/8", "--secret"}} {
		c := w.command(args...)
		var said bytes.Buffer
		c.Stdout, c.Stderr = full, &said
		_ = c.Run()
		if code := c.ProcessState.ExitCode(); code != exitFailure || !strings.Contains(said.String(), "no space left") {
			t.Errorf("%v: %d %s", args, code, said.String())
		}
	}
	if out, errs, code := w.ogw("audit", "--target", "/", "--operation", "AddUser"); code != 0 || !strings.Contains(out, "bob") {
		t.Errorf("what concerns anything: %d %s%s", code, out, errs)
	}
	c := w.command("user", "list")
	r, p, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	var said bytes.Buffer
	c.Stdout, c.Stderr = p, &said
	_ = c.Run()
	p.Close()
	if said.Len() > 0 {
		t.Errorf("a closed pipe: %s", said.String())
	}
	d.signal(syscall.SIGTERM)
	d.wait(endLimit)
}

// What a command has to say beside an exit code that speaks for itself is said.
func TestQuietError(t *testing.T) {
	quiet := error(&exitError{code: exitNotFound})
	if err := errors.Join(quiet, nil); message(err) != "" || exitCode(err) != exitNotFound {
		t.Errorf("%q %d", message(err), exitCode(err))
	}
	if err := errors.Join(quiet, errors.New("close: disk gone")); message(err) != "close: disk gone" || exitCode(err) != exitNotFound {
		t.Errorf("%q %d", message(err), exitCode(err))
	}
}

// The printed mount lines hold the ports where the clients cannot find them.
func TestExportMounts(t *testing.T) {
	for _, c := range []struct {
		name     string
		gateways []admin.Gateway
		want     string
	}{
		{"none", nil, "there is no NFS gateway yet"},
		{"portmapper", []admin.Gateway{{Listen: "10.9.0.1:2049", Portmapper: true}}, "-o vers=3,tcp 10.9.0.1:/p@s DIR\n"},
		{"another port", []admin.Gateway{{Listen: "10.9.0.1:2050"}}, "-o vers=3,tcp,port=2050,mountport=2050,nolock 10.9.0.1:/p@s DIR\n"},
		{"IPv6", []admin.Gateway{{Listen: "[fd00::1]:2049", Portmapper: true}}, "'[fd00::1]:/p@s' DIR\n"},
		{"two", []admin.Gateway{{Listen: "10.9.0.1:1"}, {Listen: "10.9.0.2:2"}}, "mountport=2,nolock 10.9.0.2:/p@s DIR\n"},
	} {
		if got := exportMounts(c.gateways, "/p@s"); !strings.HasSuffix(got, c.want) && !strings.Contains(got, c.want) ||
			strings.Count(got, "mount   ") != max(1, len(c.gateways)) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	w := newWorld(t)
	d := w.serve(anyPort...)
	_, port, _ := strings.Cut(strings.TrimPrefix(d.url("nfs"), "http://"), ":")
	if out := w.ok("export", "add", "/", "--secret"); !strings.Contains(out, ",port="+port+",mountport="+port+",nolock 127.0.0.1:/@") {
		t.Errorf("%s", out)
	}
	if out := w.ok("export", "add", "--help"); !strings.Contains(out, "of the anonymous user (default: 65534)") || strings.Contains(out, "default: -1") {
		t.Errorf("%s", out)
	}
}

// TestExportSecretIsPrinted: what went wrong after an export was made is told besides its
// secret, which nobody has otherwise.
func TestExportSecretIsPrinted(t *testing.T) {
	for _, c := range []struct{ name, answer, say string }{
		{"not served yet", `{"id": "e1", "path": "/", "clients": [], "secret": "word", "pending": "the store is busy"}`, "export e1 was added, but is not served yet: the store is busy"},
		{"gateways not known", `{"id": "e1", "path": "/", "clients": [], "secret": "word"}`, "export e1 was added, but the gateways"},
	} {
		api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/exports" {
				w.WriteHeader(http.StatusInternalServerError)
			} else if _, err := io.WriteString(w, c.answer); err != nil {
				t.Error(err)
			}
		}))
		w := newWorld(t)
		out, errs, code := w.ogw("export", "add", "/", "--secret", "--admin", api.URL, "--set", "admin.token=a-long-admin-token")
		if code != exitFailure || !strings.Contains(out, "/@word") || !strings.Contains(errs, c.say) {
			t.Errorf("%s: %d %s%s", c.name, code, out, errs)
		}
		out, errs, code = w.ogw("export", "add", "/", "--secret", "--json", "--admin", api.URL, "--set", "admin.token=a-long-admin-token")
		if pending := strings.Contains(c.answer, "pending"); !strings.Contains(out, `"word"`) || (code != 0) != pending || pending && !strings.Contains(errs, c.say) {
			t.Errorf("%s: %d %s%s", c.name, code, out, errs)
		}
		api.Close()
	}
}

// An error says what to do about it.
func TestErrorsSayWhatToDo(t *testing.T) {
	w := newWorld(t)
	address := freePort(t)
	d := w.serve(append(anyPort, "--set", "admin.token=0123456789abcdef", "--set", "admin.listen="+address)...)
	for _, c := range []struct {
		args []string
		say  string
	}{
		{[]string{"status", "--admin", "http://" + address}, "OGW_ADMIN_TOKEN"},
		{[]string{"status", "--admin", "http://" + address, "--set", "admin.token=wrong-wrong-wrong"}, "OGW_ADMIN_TOKEN"},
		{[]string{"status", "--admin", d.url("s3"), "--set", "admin.token=0123456789abcdef"}, "see admin.listen"},
		{[]string{"bucket", "add", "al"}, "3 to 255 of a-z"},
		{[]string{"stop", "--dir", "elsewhere"}, w.dir + "/elsewhere"},
	} {
		if _, errs, code := w.ogw(c.args...); code == 0 || !strings.Contains(errs, c.say) {
			t.Errorf("%v: %d %s, want %s", c.args, code, errs, c.say)
		}
	}
	d.signal(syscall.SIGTERM)
	d.wait(endLimit)
	needFUSE(t)
	mnt := w.mkdir("mnt")
	w.ok("mount", "-b", mnt)
	defer w.ok("umount", mnt)
	if _, errs, code := w.ogw(append([]string{"serve"}, anyPort...)...); code != exitInUse || !strings.Contains(errs, "ogw umount --dir "+w.data("")+" "+mnt) {
		t.Errorf("beside a mount: %d %s", code, errs)
	}
}

// A first start that fails names the option that has to change, and leaves no store:
// the next one with a right name would be beside it.
func TestFailedStartLeavesNothing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	busy := l.Addr().String()
	const none = "does not exist; make it with mkdir"
	for _, c := range []struct {
		args []string
		say  string
	}{
		{[]string{"mount", "-o", "metrics=" + busy, "mnt"}, "choose another address with --metrics, or -o metrics=ADDRESS"},
		{[]string{"mount", "-b", "-o", "metrics=" + busy, "mnt"}, "choose another address with --metrics, or -o metrics=ADDRESS"},
		{[]string{"mount", "--subtree", "../..", "mnt"}, "subtree"},
		{[]string{"mount", "none"}, none},
		{[]string{"mount", "-b", "none"}, none},
		{[]string{"mount", "."}, "is not empty"},
		{[]string{"mount", "--set", "admin.token=0123456789abcdef", "--set", "admin.listen=" + busy, "mnt"}, "with admin.listen"},
		{[]string{"serve", "--rest", busy}, "with --rest"},
		{[]string{"serve", "--set", "admin.token=0123456789abcdef", "--set", "admin.listen=" + busy}, "with admin.listen"},
	} {
		w := newWorld(t)
		w.mkdir("mnt")
		if _, errs, code := w.ogw(c.args...); code == 0 || !strings.Contains(errs, c.say) {
			t.Errorf("%v: %d %s", c.args, code, errs)
		}
		if _, err := os.Lstat(w.data("")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%v: the data folder: %v", c.args, err)
		}
	}
	// Where a store was before, no socket stays that others would take for a process.
	w := newWorld(t)
	d := w.serve(anyPort...)
	d.signal(syscall.SIGTERM)
	d.wait(endLimit)
	w.mkdir("mnt")
	if _, errs, code := w.ogw("mount", "-o", "metrics="+busy, "mnt"); code == 0 || !strings.Contains(errs, "--metrics") {
		t.Errorf("%d %s", code, errs)
	}
	if _, err := os.Lstat(w.data(admin.SocketName)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket: %v", err)
	}
}

// What check prints last counts right, and offers repair where it helps.
func TestCheckLastLine(t *testing.T) {
	problems := func(n int) []admin.Problem { return make([]admin.Problem, n) }
	for _, c := range []struct {
		report admin.CheckReport
		want   string
	}{
		{admin.CheckReport{Clean: true}, "clean"},
		{admin.CheckReport{Clean: true, Problems: problems(2), Repaired: 2}, "clean now: all problems were mended"},
		{admin.CheckReport{Problems: problems(1)}, "1 problem"},
		{admin.CheckReport{Problems: problems(1), Mendable: 1}, "1 problem; --repair mends it"},
		{admin.CheckReport{Problems: problems(3), Dropped: 2, Mendable: 5}, "5 problems; --repair mends them"},
		{admin.CheckReport{Problems: problems(3), Mendable: 2}, "3 problems; --repair mends 2 of them"},
		{admin.CheckReport{Problems: problems(3), Repaired: 1}, "2 problems"},
	} {
		var out strings.Builder
		(&check{common: common{env: &environment{stdout: &out}}}).print(c.report)
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if got := lines[len(lines)-1]; got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
