// Package libnfs drives the NFS door with the tools of libnfs-utils.
package libnfs

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ogw/integration/testenv"
)

// serve starts the program with an NFS and a REST gateway and returns what
// makes the URLs of a path.
func serve(t *testing.T) (nfs, rest func(path string) string) {
	t.Helper()
	nfs, rest, _ = serveExport(t, "path = \"/\"\nsquash = \"none\"\n")
	return nfs, rest
}

// serveExport is serve with one configured export; ogw runs a command on the
// same data folder.
func serveExport(t *testing.T, export string) (nfs, rest func(path string) string, ogw func(args ...string) (string, error)) {
	t.Helper()
	if _, err := exec.LookPath("nfs-cp"); err != nil {
		t.Skip("nfs-cp is not installed (make deps)")
	}
	port, restPort := testenv.FreePort(t), testenv.FreePort(t)
	dir := t.TempDir()
	config := filepath.Join(dir, "ogw.toml")
	text := fmt.Sprintf("[cluster]\ndir = %q\n[[gateway]]\nprotocol = \"nfs\"\nlisten = \"127.0.0.1:%d\"\n"+
		"[[gateway.export]]\n%s[[gateway]]\nprotocol = \"rest\"\nlisten = \"127.0.0.1:%d\"\n",
		filepath.Join(dir, "data"), port, export, restPort)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := exec.Command("../../bin/ogw", "serve", "--config", config)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v (make build makes it)", err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil || t.Failed() {
			t.Errorf("server: %v\n%s", err, out.Bytes())
		}
	})
	for _, p := range []int{port, restPort} {
		if err := testenv.Await(nil, fmt.Sprintf("127.0.0.1:%d", p)); err != nil {
			t.Fatal(err)
		}
	}
	nfs = func(path string) string {
		return fmt.Sprintf("nfs://127.0.0.1%s?nfsport=%d&mountport=%d&version=3&uid=0&gid=0", path, port, port)
	}
	rest = func(path string) string { return fmt.Sprintf("http://127.0.0.1:%d%s", restPort, path) }
	return nfs, rest, func(args ...string) (string, error) {
		args = append(args, "--config", config)
		out, err := exec.Command("../../bin/ogw", args...).CombinedOutput()
		return string(out), err
	}
}

func tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %v: %v\n%s%s", name, args, err, out.Bytes()[:min(out.Len(), 1000)], errs.Bytes())
	}
	return out.String()
}

func TestCopyListAndRead(t *testing.T) {
	nfs, rest := serve(t)
	data := make([]byte, 5<<20+123)
	rand.Read(data)
	put, err := http.NewRequest(http.MethodPut, rest("/bucket/dir/through-rest"), bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(put)
	if err != nil || res.StatusCode/100 != 2 {
		t.Fatalf("PUT: %v %v", res, err)
	}
	res.Body.Close()
	if got := tool(t, "nfs-cat", nfs("/bucket/dir/through-rest")); got != string(data) {
		t.Errorf("nfs-cat gives %d bytes of what REST put", len(got))
	}

	local, back := filepath.Join(t.TempDir(), "local"), filepath.Join(t.TempDir(), "back")
	if err := os.WriteFile(local, data, 0o644); err != nil {
		t.Fatal(err)
	}
	tool(t, "nfs-cp", local, nfs("/bucket/dir/copied"))
	tool(t, "nfs-cp", nfs("/bucket/dir/copied"), back)
	if got, err := os.ReadFile(back); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes came back, %v", len(got), err)
	}
	list := tool(t, "nfs-ls", nfs("/bucket/dir"))
	for _, want := range []string{"through-rest", "copied", fmt.Sprint(len(data))} {
		if !strings.Contains(list, want) {
			t.Errorf("nfs-ls shows no %s: %s", want, list)
		}
	}
	res, err = http.Get(rest("/bucket/dir/copied"))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if got, err := io.ReadAll(res.Body); err != nil || !bytes.Equal(got, data) {
		t.Errorf("REST gives %d bytes of what NFS wrote, %v", len(got), err)
	}
}
