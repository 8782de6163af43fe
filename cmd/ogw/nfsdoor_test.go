package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPortmapModes runs the program in a network namespace of its own: where
// it is the portmapper, where rpcbind is, and where neither is wanted.
func TestPortmapModes(t *testing.T) {
	for _, tool := range []string{"rpcbind", "rpcinfo", "unshare", "ip"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("needs rpcbind and iproute2 (integration/setup/apt.sh vm): ", err)
		}
	}
	if os.Getuid() != 0 {
		t.Skip("needs root for a network namespace")
	}
	const script = `
		mount -t tmpfs run /run
		ip link set lo up
		[ "$2" = none ] || { rpcbind -f & mapper=$!; }
		i=0
		while [ "$2" != none ] && ! rpcinfo -p 127.0.0.1 >/dev/null 2>&1; do
			i=$((i+1)); [ $i -lt 300 ] || { echo "rpcbind does not answer"; exit 1; }; sleep 0.1
		done
		"$1" serve --config "$3" > "$3.out" 2>&1 & server=$!
		i=0
		while ! grep -q "Ctrl-C stops" "$3.out"; do
			i=$((i+1)); [ $i -lt 300 ] || { cat "$3.out"; kill $server $mapper; exit 1; }; sleep 0.1
		done
		rpcinfo -p 127.0.0.1 2>&1 | awk '{ print $1, $2, $3, $4 }' || true
		rpcinfo -T tcp 127.0.0.1 100021 4 2>&1
		rpcinfo -T udp 127.0.0.1 100024 1 2>&1
		kill $server; wait $server
		echo stopped
		[ -z "$mapper" ] || rpcinfo -p 127.0.0.1 | awk '{ print $1, $2, $3, $4 }'
		[ -z "$mapper" ] || kill $mapper`
	registered := []string{"100003 3 tcp 2049", "100005 3 tcp 2049", "100021 4 tcp 2049", "100021 4 udp 2049",
		"100024 1 udp 2049", "program 100021 version 4 ready and waiting", "program 100024 version 1 ready and waiting"}
	for _, c := range []struct {
		mode, mapper string
		registered   bool
	}{
		{"serve", "none", true},
		{"on", "rpcbind", true},
		{"auto", "rpcbind", false}, // on loopback there is nobody to tell
		{"off", "rpcbind", false},
	} {
		t.Run(c.mode, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "ogw.toml")
			config := fmt.Sprintf("[cluster]\ndir = %q\n[[gateway]]\nprotocol = \"nfs\"\nlisten = \"127.0.0.1:2049\"\nportmap = %q\n",
				filepath.Join(dir, "data"), c.mode)
			if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command("unshare", "-n", "-m", "--propagation", "private", "sh", "-c", script, "sh", binary, c.mapper, file).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			during, after, _ := strings.Cut(string(out), "stopped\n")
			for _, line := range registered {
				if strings.Contains(during, line) != c.registered {
					t.Errorf("%q: not %v in\n%s", line, c.registered, during)
				}
				if strings.Contains(after, line) {
					t.Errorf("%q is still registered after the end", line)
				}
			}
		})
	}
}
