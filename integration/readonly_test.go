package integration

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ogw/integration/testenv"
)

// TestReadOnlyMedium: the medium below the data folder turns read-only, and is
// well again. The server says so everywhere, reads go on, writes are refused
// in words that clients try again on, and go on without a restart.
func TestReadOnlyMedium(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount")
	}
	s := newServer(t, options{})
	url := "http://" + s.REST + "/medium/"
	put := func(name string) (*http.Response, string) {
		t.Helper()
		r, err := http.NewRequest(http.MethodPut, url+name, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return resp, string(body)
	}
	socket := filepath.Join(s.Data, "admin.sock")
	ask := func(path string) string {
		out, _ := s.Try("curl", "-sS", "--max-time", "10", "--unix-socket", socket, "http://ogw"+path, "-w", "\n%{http_code}")
		return out
	}
	if resp, body := put("before"); resp.StatusCode != 201 {
		t.Fatal(resp.Status, body)
	}
	if out := ask("/readyz"); !strings.HasSuffix(out, "200") {
		t.Fatalf("before: %s", out)
	}

	// A read-only view over the folder: what is open stays, as it does when a
	// file system turns read-only; what asks sees a medium that takes nothing.
	err := syscall.Mount(s.Data, s.Data, "", syscall.MS_BIND, "")
	if err == nil {
		err = syscall.Mount("", s.Data, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
	}
	if err != nil {
		t.Skipf("cannot mount here: %v", err)
	}
	covered := true
	uncover := func() {
		if covered {
			covered = false
			if err := syscall.Unmount(s.Data, syscall.MNT_DETACH); err != nil {
				t.Errorf("unmount: %v", err)
			}
		}
	}
	defer uncover()

	testenv.Eventually(t, "writes to be refused", func() error {
		resp, body := put("during")
		if resp.StatusCode == 201 || resp.StatusCode == 204 {
			return errors.New("a PUT succeeded")
		}
		if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" || strings.Contains(body, s.Dir) {
			t.Errorf("REST: %s %v %s", resp.Status, resp.Header, body)
		}
		return nil
	})
	out, err := s.Try("/usr/bin/aws", "--endpoint-url", "http://"+s.S3, "--cli-read-timeout", "10", "s3api", "create-bucket", "--bucket", "during")
	if err == nil || !strings.Contains(out, "ServiceUnavailable") || strings.Contains(out, s.Dir) {
		t.Errorf("S3: %v: %s", err, out)
	}
	if resp, err := http.Get(url + "before"); err != nil || resp.StatusCode != 200 {
		t.Errorf("a read: %v, %v", resp, err)
	}
	if out := ask("/readyz"); !strings.HasSuffix(out, "503") || strings.Contains(out, s.Dir) {
		t.Errorf("/readyz: %s", out)
	}
	if out := s.OGW("status"); !strings.Contains(out, "READ-ONLY") {
		t.Errorf("status: %s", out)
	}
	if out := ask("/metrics"); !strings.Contains(out, "\nogw_store_writable 0\n") {
		t.Error("the metric does not tell")
	}

	uncover()
	testenv.Eventually(t, "writes to go on", func() error {
		if resp, body := put("after"); resp.StatusCode != 201 && resp.StatusCode != 204 {
			return fmt.Errorf("%s: %s", resp.Status, body)
		}
		return nil
	})
	if out := ask("/readyz"); !strings.HasSuffix(out, "200") {
		t.Errorf("after: %s", out)
	}
}
