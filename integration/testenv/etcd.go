package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stopLimit is how long a member may take to end.
const stopLimit = 30 * time.Second

// Etcd is a cluster of etcd on loopback, each member a process.
type Etcd struct {
	t       testing.TB
	binary  string
	members []etcdMember
}

type etcdMember struct {
	name, dir, client, peer string
	process                 *Process
}

// StartEtcd starts a new cluster of n members and ends it with the test. The
// environment variable OGW_ETCD names the server's binary, which make builds;
// without it the test is skipped.
func StartEtcd(t testing.TB, n int, args ...string) *Etcd {
	t.Helper()
	binary := os.Getenv("OGW_ETCD")
	if binary == "" {
		t.Skip("OGW_ETCD names no etcd: make test-cluster")
	}
	e := &Etcd{t: t, binary: binary}
	dir := TempDir(t)
	for i := range n {
		name := fmt.Sprintf("m%d", i)
		e.members = append(e.members, etcdMember{
			name: name, dir: filepath.Join(dir, name),
			client: "http://" + FreeAddr(t), peer: "http://" + FreeAddr(t),
		})
	}
	t.Cleanup(e.stop)
	for i := range n {
		e.Start(i, args...)
	}
	for _, m := range e.members {
		if err := Await(m.process.Done(), strings.TrimPrefix(m.client, "http://")); err != nil {
			t.Fatalf("etcd %s: %v", m.name, err)
		}
	}
	return e
}

// Endpoints are the addresses of the members, as host and port.
func (e *Etcd) Endpoints() []string {
	endpoints := make([]string, len(e.members))
	for i, m := range e.members {
		endpoints[i] = strings.TrimPrefix(m.client, "http://")
	}
	return endpoints
}

// Dir is the folder of member i.
func (e *Etcd) Dir(i int) string { return e.members[i].dir }

// Start starts member i, again if it was killed.
func (e *Etcd) Start(i int, args ...string) {
	e.t.Helper()
	m := &e.members[i]
	peers := make([]string, len(e.members))
	for j, p := range e.members {
		peers[j] = p.name + "=" + p.peer
	}
	cmd := exec.Command(e.binary, append([]string{
		"--name", m.name, "--data-dir", m.dir, "--log-level", "warn",
		"--listen-client-urls", m.client, "--advertise-client-urls", m.client,
		"--listen-peer-urls", m.peer, "--initial-advertise-peer-urls", m.peer,
		"--initial-cluster", strings.Join(peers, ","),
	}, args...)...)
	process, err := Start(cmd, m.dir+".log")
	if err != nil {
		e.t.Fatal(err)
	}
	m.process = process
}

// Kill ends member i as a crash does.
func (e *Etcd) Kill(i int) {
	e.members[i].process.Kill()
	e.members[i].process = nil
}

// Signal sends one to member i.
func (e *Etcd) Signal(i int, s syscall.Signal) {
	e.t.Helper()
	if err := e.members[i].process.Signal(s); err != nil {
		e.t.Fatal(err)
	}
}

func (e *Etcd) stop() {
	for _, m := range e.members {
		if m.process == nil {
			continue
		}
		if err := m.process.Stop(stopLimit); err != nil && e.t.Failed() {
			log, _ := os.ReadFile(m.dir + ".log")
			e.t.Logf("etcd %s: %v\n%s", m.name, err, log[max(0, len(log)-tailBytes):])
		}
	}
}
