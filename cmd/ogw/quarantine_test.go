package main

import (
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"ogw/httpapi/admin"
)

// TestQuarantine is an operator's way with damage: seen by a reader, listed
// with its file, its good part read, deleted, released, through a restart.
func TestQuarantine(t *testing.T) {
	w := newWorld(t)
	d := w.serve(anyPort...)
	large := strings.Repeat("0123456789abcdef", 3<<16)
	d.put("/photos/large", large)
	d.put("/photos/other", large)
	if out := w.ok("quarantine", "list"); !strings.Contains(out, "nothing is damaged") {
		t.Errorf("%s", out)
	}
	var where admin.Whereis
	w.json(&where, "whereis", "photos/large")
	blob, path := where.Extents[0].Blob, where.Extents[0].Copies[0].Path
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("x"), 1<<20); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	// The answer begins, and is cut before the damage.
	resp, err := http.Get(d.url("rest") + "/photos/large")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err == nil || !strings.HasPrefix(large, string(body)) || len(body) > 1<<20 {
		t.Errorf("damaged: %d bytes, %v", len(body), err)
	}
	soon := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(endLimit); !ok(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: not in time", what)
			}
		}
	}
	says := func(want string, args ...string) func() bool {
		return func() bool {
			out, _, _ := w.ogw(args...)
			return strings.Contains(out, want)
		}
	}
	soon("status names the file", says("blob "+blob+", files: photos/large", "status"))
	if out := w.ok("quarantine", "list"); !strings.Contains(out, path) || !strings.Contains(out, "checksum") {
		t.Errorf("%s", out)
	}
	if out, _, code := w.ogw("check"); code != exitProblems || !strings.Contains(out, "damaged-blob: photos/large: blob "+blob) {
		t.Errorf("check: %d %s", code, out)
	}
	if _, errs, code := w.ogw("quarantine", "release", blob); code != exitFailure || !strings.Contains(errs, "files use it") {
		t.Errorf("release of what is in use: %d %s", code, errs)
	}
	api := http.Client{Transport: socketTransport(w.data(admin.SocketName))}
	metric := func(line string) func() bool {
		return func() bool {
			resp, err := api.Get("http://ogw/metrics")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			return err == nil && strings.Contains(string(text), line)
		}
	}
	soon("the metric counts it", metric("\nogw_scrub_damaged_blobs 1\n"))
	if status, body := d.http("DELETE", d.url("rest")+"/photos/large", ""); status != 204 {
		t.Fatalf("%d %s", status, body)
	}
	soon("it is set aside", says("1 damaged blob of 3.0 MiB without files", "status"))
	soon("the metric counts its bytes", metric("\nogw_quarantine_aside_bytes 3.145728e+06\n"))
	d.signal(syscall.SIGTERM)
	d.wait(endLimit)
	// Without a process, the commands open the store themselves.
	if out := w.ok("check", "--data", "--repair"); !strings.Contains(out, "clean\n") || !strings.Contains(out, "1 damaged blob of 3.0 MiB") {
		t.Errorf("check: %s", out)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the bytes that are set aside: %v", err)
	}
	for _, args := range [][]string{{"quarantine", "release"}, {"quarantine", "release", "--all", blob}, {"quarantine", "release", "xyz"}} {
		if _, errs, code := w.ogw(args...); code != exitUsage {
			t.Errorf("%v: %d %s", args, code, errs)
		}
	}
	if _, errs, code := w.ogw("quarantine", "release", strings.Repeat("0", 32)); code != exitNotFound {
		t.Errorf("release of nothing: %d %s", code, errs)
	}
	if out := w.ok("quarantine", "release", blob); !strings.Contains(out, "1 damaged blob of 3.0 MiB released") {
		t.Errorf("%s", out)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the space is not back: %v", err)
	}
	d = w.serve(anyPort...)
	if d.get("/photos/other") != large {
		t.Error("the neighbour has other bytes")
	}
}
