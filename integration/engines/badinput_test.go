package engines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/minio/minio-go/v7"
	clientv3 "go.etcd.io/etcd/client/v3"

	"ogw/cluster"
	"ogw/cluster/etcd"
	"ogw/cluster/postgres"
	"ogw/integration/testenv"
)

func etcdClient(t *testing.T, addrs ...string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: addrs, DialTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// sql runs statements one by one.
func sql(t *testing.T, p *testenv.Postgres, statements ...string) {
	t.Helper()
	sqlAt(t, p.URL(p.Addr()), statements...)
}

func sqlAt(t *testing.T, url string, statements ...string) {
	t.Helper()
	c, err := pgx.Connect(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	for _, s := range statements {
		if _, err := c.Exec(context.Background(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// Servers that refuse a client say why, and so does Open.
func TestRefusedCredentials(t *testing.T) {
	e := testenv.StartEtcd(t, 1)
	addr := e.Endpoints()[0]
	lock := lockEtcd(t, addr)
	lock()
	p := testenv.StartPostgres(t)
	sql(t, p, "CREATE ROLE barred NOLOGIN", "CREATE ROLE poor LOGIN")
	at := func(user string) postgres.Options {
		return postgres.Options{URL: "postgres://" + user + "@" + p.Addr() + "/postgres", Password: "secret"}
	}
	for name, test := range map[string]struct {
		open func() (cluster.KV, error)
		says string
	}{
		"etcd, another password": {func() (cluster.KV, error) {
			return etcd.Open(t.Context(), etcd.Options{Endpoints: []string{addr}, Username: "root", Password: "secret"})
		}, "authentication failed"},
		"etcd, nobody":                    {func() (cluster.KV, error) { return etcd.Open(t.Context(), etcd.Options{Endpoints: []string{addr}}) }, "user name is empty"},
		"PostgreSQL, no such role":        {func() (cluster.KV, error) { return postgres.Open(t.Context(), at("nobody")) }, `role "nobody" does not exist`},
		"PostgreSQL, may not log in":      {func() (cluster.KV, error) { return postgres.Open(t.Context(), at("barred")) }, "not permitted to log in"},
		"PostgreSQL, may not make tables": {func() (cluster.KV, error) { return postgres.Open(t.Context(), at("poor")) }, "permission denied for schema public"},
	} {
		begin := time.Now()
		_, err := test.open()
		if !errors.Is(err, cluster.ErrUnavailable) || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("%s: refused after %v", name, took)
		}
	}
}

// lockEtcd makes a user, and returns what has members ask for it from then on. What
// that returns ends it.
func lockEtcd(t *testing.T, addr string) (lock func() (unlock func())) {
	t.Helper()
	c, ctx := etcdClient(t, addr), context.Background()
	_, err := c.UserAdd(ctx, "root", "password")
	if err == nil {
		_, err = c.UserGrantRole(ctx, "root", "root")
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() func() {
		if _, err := c.AuthEnable(ctx); err != nil {
			t.Fatal(err)
		}
		return func() {
			as, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, DialTimeout: 5 * time.Second, Username: "root", Password: "password"})
			if err == nil {
				defer as.Close()
				_, err = as.AuthDisable(ctx)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A revision that was dropped ends a View, and an Update reads anew.
func TestEtcdCompacted(t *testing.T) {
	e := testenv.StartEtcd(t, 1)
	kv := openEtcd(t, newPrefix(), e.Endpoints()...)
	other := etcdClient(t, e.Endpoints()[0])
	compact := func() error {
		answer, err := other.Put(context.Background(), "moved", "")
		if err == nil {
			_, err = other.Compact(context.Background(), answer.Header.Revision)
		}
		return err
	}
	reads := func(r cluster.Reader) error {
		if _, err := r.Get([]byte("a")); err != nil {
			return err
		}
		if err := compact(); err != nil {
			return err
		}
		_, err := r.Get([]byte("b"))
		return err
	}
	if err := kv.View(context.Background(), reads); !errors.Is(err, cluster.ErrUnavailable) || !strings.Contains(err.Error(), "compacted") {
		t.Errorf("View: %v", err)
	}
	runs := 0
	err := kv.Update(context.Background(), func(txn cluster.Txn) error {
		if runs++; runs > 1 {
			return txn.Set([]byte("a"), []byte("v"))
		}
		return reads(txn)
	})
	if err != nil || runs != 2 {
		t.Errorf("Update: %v after %d runs", err, runs)
	}
}

// A gateway whose metadata have no space left loses nothing that it acknowledged,
// and goes on when there is some.
func TestGatewayFull(t *testing.T) {
	onMetadata(t, func(t *testing.T, x *shared) {
		a := x.gateway(nil)
		c := s3Client(t, a)
		if err := c.MakeBucket(context.Background(), "bkt", minio.MakeBucketOptions{}); err != nil {
			t.Fatal(err)
		}
		empty := x.meta.fill(t)
		body := func(i int) []byte { return bytes.Repeat(fmt.Appendf(nil, "%08d", i), 1<<10) }
		acked := map[int]bool{}
		var err error
		for i := 0; err == nil && i < 5000; i++ {
			if err = put(c, fmt.Sprint("full", i), body(i)); err == nil {
				acked[i] = true
			}
		}
		var r minio.ErrorResponse
		if !errors.As(err, &r) || r.StatusCode != 507 {
			t.Errorf("after %d objects: %v", len(acked), err)
		}
		t.Logf("%d objects were acknowledged", len(acked))
		if x.meta.fullStops {
			waitFor(t, func() bool { return !ready(t, a) })
			if log := a.Log(); !strings.Contains(log, "no space left") {
				t.Errorf("log:\n%s", log)
			}
		}
		empty()
		waitFor(t, func() bool { return ready(t, a) })
		if err := put(c, "after", small); err != nil {
			t.Error(err)
		}
		for i := range acked {
			wantObject(t, c, fmt.Sprint("full", i), body(i))
		}
		if out := a.OGW("check"); strings.Contains(out, "problem") && !strings.Contains(out, "no problem") && !strings.Contains(out, "0 problem") {
			t.Errorf("check:\n%s", out)
		}
	})
}

// A gateway that the servers do not let in any more is as without them.
func TestGatewayLockedOut(t *testing.T) {
	onMetadata(t, func(t *testing.T, x *shared) {
		a := x.gateway(nil)
		c := s3Client(t, a)
		if err := c.MakeBucket(context.Background(), "bkt", minio.MakeBucketOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := put(c, "big", big); err != nil {
			t.Fatal(err)
		}
		lock := x.meta.locks(t)
		var unlock func()
		x.away(t, a, c, func() { unlock = lock() }, func() { unlock() })
	})
}

// A store of a newer format is refused at once and left as it is.
func TestGatewayNewer(t *testing.T) {
	onMetadata(t, func(t *testing.T, x *shared) {
		a := x.gateway(nil)
		a.Stop()
		kv := x.meta.open(t)
		super := []byte("S")
		var newer []byte
		err := kv.Update(context.Background(), func(txn cluster.Txn) error {
			v, err := txn.Get(super)
			if err != nil || len(v) == 0 {
				return fmt.Errorf("superblock %x %w", v, err)
			}
			newer = append([]byte{}, v...)
			newer[len(newer)-17] = 100 // before the two numbers of 8 bytes
			return txn.Set(super, newer)
		})
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if out := refused(t, x.conf); !strings.Contains(out, "the store has format 100, this program knows up to") {
			t.Errorf("it says:\n%s", out)
		}
		if took := time.Since(begin); took > 30*time.Second {
			t.Errorf("it was refused after %v", took)
		}
		err = kv.View(context.Background(), func(r cluster.Reader) error {
			v, err := r.Get(super)
			if err == nil && !bytes.Equal(v, newer) {
				err = fmt.Errorf("the superblock is %x", v)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// Who cannot begin says why, and ends: a command at once, a gateway after it tried
// for a minute.
func TestGatewayCannotBegin(t *testing.T) {
	t.Parallel()
	x := startShared(t, startEtcdMeta)
	x.gateway(nil).Stop() // makes the store
	nobody := testenv.FreeAddr(t)
	for name, test := range map[string]struct{ conf, says string }{
		"another name":   {"store = \"another\"\n" + x.conf, `has none with the name "another"`},
		"no etcd":        {x.lines("etcd://" + nobody), nobody},
		"no PostgreSQL":  {x.lines("postgres://u@" + nobody + "/db"), "connection refused"},
		"another secret": {strings.Replace(x.conf, x.s3.Secret, "secret", 1), "SignatureDoesNotMatch"},
		"another bucket": {strings.Replace(x.conf, "/blobs", "/others", 1), "NoSuchBucket"},
	} {
		begin := time.Now()
		if out := refused(t, test.conf, "check"); !strings.Contains(out, test.says) {
			t.Errorf("%s: it says:\n%s", name, out)
		}
		if took := time.Since(begin); took > 20*time.Second {
			t.Errorf("%s: it ended after %v", name, took)
		}
	}
	begin := time.Now()
	out := refused(t, strings.Replace(x.conf, x.s3.Addr(), nobody, 1))
	if took := time.Since(begin); !strings.Contains(out, "connection refused") || took < 50*time.Second || took > 100*time.Second {
		t.Errorf("no S3: after %v it says:\n%s", took, out)
	}
}

// A full server of blobs takes nothing more, and keeps what it has.
func TestS3Full(t *testing.T) {
	v := testenv.StartVersitygw(t, "store")
	dir := filepath.Join(v.Dir, "store")
	smallDisk(t, dir, 16<<20)
	b := openS3(t, at(v, ""))
	acked := map[cluster.BlobID]int{}
	var err error
	for i := 0; err == nil && i < 100; i++ {
		id := cluster.BlobID{Content: 1, Seq: uint64(i)}
		if err = blob(b, id, 1<<20); err == nil {
			acked[id] = 1 << 20
		}
	}
	if !errors.Is(err, cluster.ErrUnavailable) && !errors.Is(err, cluster.ErrNoSpace) {
		t.Errorf("after %d blobs: %v", len(acked), err)
	}
	t.Logf("after %d blobs: %v", len(acked), err)
	for id, n := range acked {
		wantBlob(t, b, id, n)
	}
	if err := b.Delete(context.Background(), cluster.BlobID{Content: 1}, cluster.BlobID{Content: 1, Seq: 1}); err != nil {
		t.Fatal(err)
	}
	if err := blob(b, cluster.BlobID{Content: 2}, 1<<20); err != nil {
		t.Errorf("after blobs were deleted: %v", err)
	}
}

// smallDisk mounts a disk of size bytes at dir.
func smallDisk(t *testing.T, dir string, size int) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("not root")
	}
	if out, err := testenv.Output("", os.Environ(), "mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%d,mode=777", size), "tmpfs", dir); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := testenv.Output("", os.Environ(), "umount", "-l", dir); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
}
