package libnfs

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

//go:embed showmount.sh
var showmountScript string

// TestShowmount asks rpcbind and showmount, in a network of their own, about
// a gateway on the usual port, and mounts without naming a port.
func TestShowmount(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("makes a network namespace: needs root")
	}
	for _, program := range []string{"unshare", "ip", "rpcbind", "rpcinfo", "showmount", "nfs-ls"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%v (make deps-vm)", err)
		}
	}
	binary, err := filepath.Abs("../../bin/ogw")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("unshare", "--net", "--mount", "sh", "-c", showmountScript, "sh", binary, t.TempDir())
	b, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	out := string(b)
	before, after, ok := strings.Cut(out, "== stopped\n")
	if !ok {
		t.Fatal(out)
	}
	for _, want := range []string{
		"100003    3   tcp   2049  nfs", "100005    3   tcp   2049  mountd", // rpcinfo
		"Export list", "/public 10.0.0.0/8,127.0.0.0/8\n", "/private (everyone)\n", // showmount -e
		"a-file",            // nfs-ls
		"127.0.0.1:/public", // showmount -a
	} {
		if !strings.Contains(before, want) {
			t.Errorf("no %q in\n%s", want, before)
		}
	}
	if strings.Contains(before, "/elsewhere") || strings.Contains(before, "hidden-secret-word") {
		t.Errorf("what this client must not see:\n%s", before)
	}
	if strings.Contains(after, "100003") || strings.Contains(after, "100005") {
		t.Errorf("still registered:\n%s", after)
	}
}
