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
		ip address add 10.9.0.1/32 dev lo
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
		grep "mount -t nfs" "$3.out"
		"$1" status --config "$3" | grep "^gateway"
		rpcinfo -p 127.0.0.1 2>&1 | awk '{ print $1, $2, $3, $4 }' || true
		rpcinfo -T tcp "$4" 100021 4 2>&1
		rpcinfo -T udp "$4" 100024 1 2>&1
		kill $server; wait $server
		echo stopped
		[ -z "$mapper" ] || rpcinfo -p 127.0.0.1 | awk '{ print $1, $2, $3, $4 }'
		[ -z "$mapper" ] || kill $mapper`
	registered := []string{"100003 3 tcp 2049", "100005 3 tcp 2049", "100021 4 tcp 2049", "100021 4 udp 2049",
		"100024 1 udp 2049", "program 100021 version 4 ready and waiting", "program 100024 version 1 ready and waiting"}
	for _, c := range []struct {
		mode, mapper, host string
		registered         bool
		mount              string // what serve prints
	}{
		{"serve", "none", "127.0.0.1", true, "-o vers=3,tcp,nolock 127.0.0.1:/ /mnt"},
		{"on", "rpcbind", "127.0.0.1", true, "-o vers=3,tcp,nolock 127.0.0.1:/ /mnt"},
		{"auto", "rpcbind", "127.0.0.1", false, "-o vers=3,tcp,port=2049,mountport=2049,nolock 127.0.0.1:/ /mnt"}, // nobody to notify
		{"off", "rpcbind", "127.0.0.1", false, "-o vers=3,tcp,port=2049,mountport=2049,nolock 127.0.0.1:/ /mnt"},
		{"auto", "rpcbind", "10.9.0.1", true, "-o vers=3,tcp 10.9.0.1:/ /mnt"},
		{"auto", "none", "10.9.0.1", false, "-o vers=3,tcp,port=2049,mountport=2049,nolock 10.9.0.1:/ /mnt"},
	} {
		t.Run(c.mode+" "+c.mapper+" "+c.host, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "ogw.toml")
			config := fmt.Sprintf("[cluster]\ndir = %q\n[[gateway]]\nprotocol = \"nfs\"\nlisten = \"%s:2049\"\nportmap = %q\n"+
				"[[gateway.export]]\npath = \"/\"\nclients = [\"127.0.0.0/8\", \"10.0.0.0/8\"]\n", filepath.Join(dir, "data"), c.host, c.mode)
			if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command("unshare", "-n", "-m", "--propagation", "private", "sh", "-c", script, "sh", binary, c.mapper, file, c.host).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if !strings.Contains(string(out), c.mount) || strings.Contains(string(out), "(known to the portmapper)") != c.registered {
				t.Errorf("not %q, or the status differs, in\n%s", c.mount, out)
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
