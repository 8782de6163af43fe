package engines

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"ogw/cluster"
	"ogw/integration/testenv"
)

// metaServer is a server that holds the metadata of a store.
type metaServer struct {
	url         string // as cluster.metadata has it
	hosts       []string
	place       string // as ogw status has it
	dir         string // its files
	kill, start func()
	signal      func(syscall.Signal)
	// trips is how many round trips its clients made.
	trips func(t *testing.T) float64
	// another starts an empty one of the same kind.
	another func(t *testing.T) *metaServer
	open    func(t *testing.T) cluster.KV // the store of a gateway
	// locks prepares a lock, which keeps all clients out until what it returns is
	// called.
	locks func(t *testing.T) (lock func() (unlock func()))
	// bare puts and gets pairs without a gateway.
	bare func(t *testing.T, clients int, body []byte) (put, get func(client, i int) error)
	// fill leaves little space, until empty is called.
	fill func(t *testing.T) (empty func())
	// fullStops is set where a full server takes no beat either.
	fullStops bool
}

var metaKinds = []struct {
	name  string
	start func(t *testing.T) *metaServer
}{
	{"etcd", startEtcdMeta},
	{"PostgreSQL", startPostgresMeta},
}

func startEtcdMeta(t *testing.T) *metaServer {
	return etcdMeta(t, "--quota-backend-bytes", fmt.Sprint(etcdQuota))
}

// etcdMeta starts etcd with options.
func etcdMeta(t *testing.T, options ...string) *metaServer {
	t.Helper()
	return ofEtcd(t, testenv.StartEtcd(t, 1, options...))
}

// startEtcdCluster starts three members. What is done to the server is done to the one that
// leads.
func startEtcdCluster(t *testing.T) *metaServer {
	t.Helper()
	e := testenv.StartEtcd(t, 3)
	m, victim := ofEtcd(t, e), 0
	m.kill = func() {
		victim = leader(t, e)
		e.Kill(victim)
	}
	m.start = func() { e.Start(victim) }
	m.signal = func(s syscall.Signal) {
		if s == syscall.SIGSTOP {
			victim = leader(t, e)
		}
		e.Signal(victim, s)
	}
	return m
}

// leader is the number of the member that leads, or of the first one that says it has none.
func leader(t *testing.T, e *testenv.Etcd) int {
	c := etcdClient(t, e.Endpoints()...)
	for i, addr := range e.Endpoints() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		s, err := c.Status(ctx, addr)
		cancel()
		if err == nil && s.Header.MemberId == s.Leader {
			return i
		}
	}
	return 0
}

func ofEtcd(t *testing.T, e *testenv.Etcd) *metaServer {
	addr := e.Endpoints()[0]
	hosts := strings.Join(e.Endpoints(), ",")
	return &metaServer{
		url: "etcd://" + hosts, place: "etcd at " + hosts, dir: e.Dir(0), hosts: e.Endpoints(),
		kill: func() { e.Kill(0) }, start: func() { e.Start(0) }, signal: func(s syscall.Signal) { e.Signal(0, s) },
		trips:   func(t *testing.T) float64 { return etcdCalls(t, addr) },
		another: startEtcdMeta,
		open:    func(t *testing.T) cluster.KV { return openEtcd(t, "ogw/", addr) },
		locks:   func(t *testing.T) func() func() { return lockEtcd(t, addr) },
		bare: func(t *testing.T, _ int, body []byte) (put, get func(client, i int) error) {
			return bareEtcd(t, addr, body)
		},
		fill: func(t *testing.T) func() { return fillEtcd(t, addr) }, fullStops: true,
	}
}

func startPostgresMeta(t *testing.T) *metaServer {
	t.Helper()
	p := testenv.StartPostgres(t)
	proxy := newLossyProxy(t, p.Addr())
	m := postgresMeta(t, p, proxy.addr())
	m.trips = func(*testing.T) float64 { return float64(proxy.trips.Load()) }
	return m
}

// postgresMeta is a server that is spoken to at addr.
func postgresMeta(t *testing.T, p *testenv.Postgres, addr string) *metaServer {
	return &metaServer{
		hosts: []string{addr}, url: p.URL(addr), place: "PostgreSQL at " + addr + ", database postgres", dir: p.Dir(),
		kill: p.Kill, start: func() { p.Start() }, signal: p.Signal,
		another: startPostgresMeta,
		open:    func(t *testing.T) cluster.KV { return openPostgres(t, p.URL(addr), "ogw") },
		locks:   func(t *testing.T) func() func() { return lockPostgres(t, p) },
		bare: func(t *testing.T, clients int, body []byte) (put, get func(client, i int) error) {
			return barePostgres(t, p, clients, body)
		},
		fill: func(t *testing.T) func() { return fillPostgres(t, p) },
	}
}

// etcdQuota is filled in seconds.
const etcdQuota = 48 << 20

// fillEtcd leaves some MiB of the quota. etcd itself says what is to be done when the
// alarm was raised.
func fillEtcd(t *testing.T, addr string) (empty func()) {
	c, ctx := etcdClient(t, addr), context.Background()
	for i := range (etcdQuota - 16<<20) >> 20 {
		if _, err := c.Put(ctx, fmt.Sprint("filler", i), strings.Repeat("x", 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		gone, err := c.Delete(ctx, "filler", clientv3.WithPrefix())
		if err == nil {
			_, err = c.Compact(ctx, gone.Header.Revision, clientv3.WithCompactPhysical())
		}
		if err == nil {
			_, err = c.Defragment(ctx, addr)
		}
		if err == nil {
			_, err = c.AlarmDisarm(ctx, &clientv3.AlarmMember{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// fillPostgres moves the pairs to a small disk.
func fillPostgres(t *testing.T, p *testenv.Postgres) (empty func()) {
	dir := filepath.Join(testenv.TempDir(t), "small")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	smallDisk(t, dir, 8<<20)
	space := filepath.Join(dir, "space")
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Mkdir(space, 0o700), os.Chown(space, testenv.Nobody, testenv.Nobody)); err != nil {
		t.Fatal(err)
	}
	sql(t, p, "CREATE TABLESPACE small LOCATION '"+space+"'", "ALTER TABLE ogw_pairs SET TABLESPACE small")
	return func() { sql(t, p, "ALTER TABLE ogw_pairs SET TABLESPACE pg_default") }
}

// lockPostgres returns what keeps the gateway's user out and ends its connections.
func lockPostgres(t *testing.T, p *testenv.Postgres) func() func() {
	sql(t, p, "CREATE ROLE admin SUPERUSER LOGIN")
	as := "postgres://admin@" + p.Addr() + "/postgres"
	return func() func() {
		sqlAt(t, as, "ALTER ROLE u NOLOGIN", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'u'")
		return func() { sqlAt(t, as, "ALTER ROLE u LOGIN") }
	}
}

// etcdCalls is how many reads and transactions a member was asked for.
func etcdCalls(t *testing.T, addr string) (n float64) {
	t.Helper()
	resp, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), "} ")
		if strings.HasPrefix(name, "grpc_server_started_total{") && (strings.Contains(name, `grpc_method="Range"`) || strings.Contains(name, `grpc_method="Txn"`)) {
			v, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(err)
			}
			n += v
		}
	}
	return n
}
