package libnfs

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"ogw/httpapi/admin"
	"ogw/integration/tools/bench/nfsclient"
)

// TestFigures finds what a client did in ogw status and among the metrics:
// calls, errors, bytes and durations of each procedure.
func TestFigures(t *testing.T) {
	nfs, _, ogw := serveExport(t, "path = \"/\"\nsquash = \"none\"\n")
	_, port, _ := strings.Cut(nfs(""), "nfsport=")
	port, _, _ = strings.Cut(port, "&")
	addr := "127.0.0.1:" + port
	c, err := nfsclient.Dial(addr, addr, "/")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	file, err := c.Create(c.Root, "file")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Create(c.Root, "file"); err == nil {
		t.Fatal("made twice")
	}
	if _, err := c.Write(file, 0, make([]byte, 100_000)); err != nil {
		t.Fatal(err)
	}
	calls := 0
	if _, err := c.Run(nfsclient.Getattr, 4, func(i int) []byte {
		if i == 10 {
			return nil
		}
		calls++
		return nfsclient.HandleArgs(file)
	}); err != nil {
		t.Fatal(err)
	}

	out, err := ogw("status", "--json")
	var st admin.Status
	if err != nil || json.Unmarshal([]byte(out), &st) != nil {
		t.Fatalf("%v %s", err, out)
	}
	var seen *admin.NFSClient
	for _, g := range st.Gateways {
		for i, x := range g.Clients {
			if g.Protocol == "nfs" && x.Machine == "bench" {
				seen = &g.Clients[i]
			}
		}
	}
	if seen == nil || seen.Calls < uint64(calls) || seen.BytesIn < 100_000 || seen.BytesOut == 0 ||
		len(seen.Mounts) != 1 || seen.Mounts[0] != "/" || !strings.HasPrefix(seen.Address, "127.0.0.1:") {
		t.Errorf("%+v in %s", seen, out)
	}
	if out, err := ogw("status"); err != nil || !strings.Contains(out, "bench (127.0.0.1:") || !strings.Contains(out, "mounted /") {
		t.Errorf("%v %s", err, out)
	}

	metrics := scrape(t, st.Dir)
	for _, want := range []string{
		`ogw_nfs_clients{gateway="nfs"} 1`,
		`ogw_nfs_call_seconds_count{gateway="nfs",procedure="GETATTR",program="nfs"} 10`,
		`ogw_nfs_call_seconds_count{gateway="nfs",procedure="CREATE",program="nfs"} 2`,
		`ogw_nfs_call_seconds_count{gateway="nfs",procedure="MNT",program="mount"} 1`,
		`ogw_nfs_errors_total{gateway="nfs",procedure="CREATE",program="nfs"} 1`,
		`ogw_nfs_errors_total{gateway="nfs",procedure="GETATTR",program="nfs"} 0`,
		`ogw_nfs_bytes_total{direction="in",gateway="nfs",procedure="WRITE",program="nfs"} 100`,
		`ogw_nfs_call_seconds_bucket{gateway="nfs",procedure="WRITE",program="nfs",le="+Inf"} 1`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s in\n%s", want, nfsLines(metrics))
		}
	}
}

func nfsLines(metrics string) string {
	var out []string
	for line := range strings.Lines(metrics) {
		if strings.HasPrefix(line, "ogw_nfs") && !strings.Contains(line, "_bucket") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

// scrape reads the metrics of the process that serves a data folder.
func scrape(t *testing.T, data string) string {
	t.Helper()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(data, admin.SocketName))
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dial}}
	defer client.CloseIdleConnections()
	r, err := client.Get("http://ogw/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
