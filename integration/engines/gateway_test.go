package engines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"ogw/integration/testenv"
)

// shared are servers of one store, and what a gateway is configured with.
type shared struct {
	t     *testing.T
	meta  *metaServer
	blobs *blobServer
	s3    *testenv.Versitygw // which has the blobs, or nil
	conf  string
	nfs   string // lines of each NFS gateway
	many  bool   // several gateways at a time
}

// manyGateways lets several gateways use the store at a time.
func (x *shared) manyGateways() {
	x.conf, x.many = x.conf+"gateways = \"many\"\n", true
}

// onMetadata runs a test on a store for each kind of server that keeps metadata.
// Both, and other such tests, run at the same time: they mostly wait.
func onMetadata(t *testing.T, test func(t *testing.T, x *shared)) {
	t.Helper()
	t.Parallel()
	for _, kind := range metaKinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			test(t, startShared(t, kind.start))
		})
	}
}

// onStores runs a test on those stores, and on one with blobs in a pool of Ceph where that
// is built in.
func onStores(t *testing.T, test func(t *testing.T, x *shared)) {
	t.Helper()
	onMetadata(t, test)
	if startPool != nil {
		t.Run("RADOS", func(t *testing.T) {
			t.Parallel()
			test(t, startStore(t, startEtcdMeta, startPool(t)))
		})
	}
}

func startShared(t *testing.T, start func(t *testing.T) *metaServer) *shared {
	t.Helper()
	v := testenv.StartVersitygw(t, "blobs")
	x := startStore(t, start, s3Blobs(v))
	x.s3 = v
	return x
}

func startStore(t *testing.T, start func(t *testing.T) *metaServer, blobs *blobServer) *shared {
	t.Helper()
	x := &shared{t: t, meta: start(t), blobs: blobs}
	x.conf = x.lines(x.meta.url)
	return x
}

func (x *shared) lines(metadata string) string {
	return fmt.Sprintf("metadata = %q\n%s", metadata, x.blobs.lines)
}

func (x *shared) blobNames(t *testing.T) map[string]bool { return x.blobs.names(t) }

// gateway starts one. from is another one of the same store, or nil.
func (x *shared) gateway(from *testenv.Server) *testenv.Server {
	x.t.Helper()
	s := x.prepare(from)
	s.Start()
	return s
}

// prepare returns one to be started.
func (x *shared) prepare(from *testenv.Server) *testenv.Server {
	x.t.Helper()
	o := testenv.ServerOptions{Engine: "shared", Cluster: x.conf, NFS: x.nfs, Data: filepath.Join(testenv.TempDir(x.t), "data"),
		Extra: fmt.Sprintf("[admin]\nlisten = %q\ntoken = %q\n", testenv.FreeAddr(x.t), adminToken)}
	if from != nil { // the root key is printed once, where the store was made
		key, err := os.ReadFile(filepath.Join(from.Data, "credentials"))
		if err == nil {
			err = os.MkdirAll(o.Data, 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(o.Data, "credentials"), key, 0o600)
		}
		if err != nil {
			x.t.Fatal(err)
		}
	}
	return testenv.PrepareServer(x.t, ogw, o)
}

const adminToken = "0123456789abcdef"

// refused runs a gateway that must not start, or a command, and returns what it says.
func refused(t *testing.T, conf string, command ...string) string {
	t.Helper()
	dir := testenv.TempDir(t)
	file := filepath.Join(dir, "ogw.toml")
	if err := os.Mkdir(filepath.Join(dir, "data"), 0o700); err != nil { // which a command does not make
		t.Fatal(err)
	}
	text := fmt.Sprintf("[cluster]\nengine = \"shared\"\ndir = %q\n%s", filepath.Join(dir, "data"), conf)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if len(command) == 0 {
		command = []string{"serve"}
	}
	out, err := exec.CommandContext(ctx, ogw, append(command, "--config", file)...).CombinedOutput()
	if err == nil || ctx.Err() != nil {
		t.Fatalf("it ran: %v\n%s", err, out)
	}
	return string(out)
}

func s3Client(t *testing.T, s *testenv.Server) *minio.Client {
	t.Helper()
	c, err := minio.New(s.S3, &minio.Options{Creds: credentials.NewStaticV4(s.KeyID, s.Secret, ""), Region: "us-east-1", MaxRetries: 1})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func put(c *minio.Client, key string, data []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := c.PutObject(ctx, "bkt", key, bytes.NewReader(data), int64(len(data)), minio.PutObjectOptions{DisableMultipart: true})
	return err
}

func wantObject(t *testing.T, c *minio.Client, key string, data []byte) {
	t.Helper()
	o, err := c.GetObject(context.Background(), "bkt", key, minio.GetObjectOptions{})
	if err == nil {
		var got []byte
		if got, err = io.ReadAll(o); err == nil && !bytes.Equal(got, data) {
			err = errors.New("other bytes")
		}
	}
	if err != nil {
		t.Errorf("object %s: %v", key, err)
	}
}

// unavailable reports whether err is a 503.
func unavailable(err error) bool {
	var r minio.ErrorResponse
	return errors.As(err, &r) && r.StatusCode == http.StatusServiceUnavailable
}

// ready asks a gateway whether it is.
func ready(t *testing.T, s *testenv.Server) bool {
	t.Helper()
	out, _ := s.TryOGW("status", "--json")
	return strings.Contains(out, `"store": "writable"`) || strings.Contains(out, `"store":"writable"`)
}

var big, small = bytes.Repeat([]byte("0123456789abcdef"), 20<<16), []byte("small")

// TestGateway runs gateways over one store, one after another, and takes from
// them what they stand on.
func TestGateway(t *testing.T) { onStores(t, testGateway) }

func testGateway(t *testing.T, x *shared) {
	a := x.gateway(nil)
	c := s3Client(t, a)
	if err := c.MakeBucket(context.Background(), "bkt", minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(put(c, "big", big), put(c, "small", small)); err != nil {
		t.Fatal(err)
	}
	wantObject(t, c, "big", big)
	t.Run("tells", func(t *testing.T) {
		a := a.With(t)
		status, where := a.OGW("status"), a.OGW("whereis", "bkt/big")
		host, _ := os.Hostname()
		for _, want := range []string{"shared: metadata in " + x.meta.place, "blobs in " + x.blobs.place, "host " + host} {
			if !strings.Contains(status, want) {
				t.Errorf("status lacks %q:\n%s", want, status)
			}
		}
		for _, want := range x.blobs.where {
			if !strings.Contains(where, want) {
				t.Errorf("whereis lacks %q:\n%s", want, where)
			}
		}
		if out := a.OGW("check"); strings.Contains(out, "problem") && !strings.Contains(out, "no problem") && !strings.Contains(out, "0 problem") {
			t.Errorf("check:\n%s", out)
		}
	})
	t.Run("second", func(t *testing.T) {
		if out := refused(t, x.conf); !strings.Contains(out, "in use by another gateway: on host") {
			t.Errorf("a second gateway:\n%s", out)
		}
	})
	t.Run("metadata away", func(t *testing.T) { x.away(t, a, c, x.meta.kill, x.meta.start) })
	t.Run("metadata stand still", func(t *testing.T) {
		x.away(t, a, c, func() { x.meta.signal(syscall.SIGSTOP) }, func() { x.meta.signal(syscall.SIGCONT) })
	})
	if x.blobs.stop != nil {
		t.Run("blobs away", func(t *testing.T) { x.away(t, a, c, x.blobs.stop, x.blobs.start) })
	}
	b := x.takeover(a)
	c = s3Client(t, b)
	wantObject(t, c, "big", big)
	b.Kill()
	begin := time.Now()
	a.Start()
	t.Logf("after kill -9, the next gateway served in %v", time.Since(begin).Round(100*time.Millisecond))
	c = s3Client(t, a)
	wantObject(t, c, "big", big)
	wantObject(t, c, "of b", small)
}

// away takes a server from a gateway and gives it back: clients are refused and
// told to come again, the gateway is not ready, and all is well after.
func (x *shared) away(t *testing.T, s *testenv.Server, c *minio.Client, stop, start func()) {
	stop()
	refusals := 0
	waitFor(t, func() bool {
		if err := put(c, "x", big[:1<<20]); unavailable(err) {
			refusals++
		}
		return refusals > 0 && !ready(t, s)
	})
	req, err := http.NewRequest(http.MethodHead, "http://"+s.S3+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := http.DefaultClient.Do(req); err == nil {
		resp.Body.Close()
		if resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") == "" {
			t.Error("503 without Retry-After")
		}
	}
	begin := time.Now()
	start()
	waitFor(t, func() bool { return ready(t, s) })
	t.Logf("ready %v after the server came back", time.Since(begin).Round(100*time.Millisecond))
	if err := put(c, "x", big[:1<<20]); err != nil {
		t.Error(err)
	}
	wantObject(t, c, "big", big)
}

// takeover has a gateway stand still until another one has the store, and then
// go on: nothing that it does may count, and it ends.
func (x *shared) takeover(a *testenv.Server) *testenv.Server {
	t, process := x.t, a.Process
	signal := func(s syscall.Signal) {
		if err := process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP)
	begin := time.Now()
	b := x.gateway(a)
	t.Logf("a gateway took the place of one that stood still in %v", time.Since(begin).Round(100*time.Millisecond))
	if err := put(s3Client(t, b), "of b", small); err != nil {
		t.Error(err)
	}
	late := make(chan error, 1)
	go func() { late <- put(s3Client(t, a), "of b", []byte("late")) }()
	signal(syscall.SIGCONT)
	if err := <-late; err == nil {
		t.Error("a write was acknowledged by a gateway that had lost the store")
	}
	select {
	case <-process.Done():
	case <-time.After(time.Minute):
		t.Fatal("a gateway that lost the store goes on")
	}
	if log := a.Log(); !strings.Contains(log, "has put this one out") {
		t.Errorf("log:\n%s", log)
	}
	a.Process = nil
	wantObject(t, s3Client(t, b), "of b", small)
	return b
}

// Halves that do not belong together are told apart; metadata that were restored
// from an earlier time lose no blob of a later one.
func TestGatewayHalves(t *testing.T) { onStores(t, testGatewayHalves) }

func testGatewayHalves(t *testing.T, x *shared) {
	a := x.gateway(nil)
	c := s3Client(t, a)
	if err := c.MakeBucket(context.Background(), "bkt", minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := put(c, "early", big); err != nil {
		t.Fatal(err)
	}
	a.Stop()
	x.meta.kill()
	saved := filepath.Join(testenv.TempDir(t), "saved")
	copyFolder(t, x.meta.dir, saved)
	x.meta.start()
	a.Start()
	if err := put(s3Client(t, a), "late", big); err != nil {
		t.Fatal(err)
	}
	a.Stop()
	later := x.blobNames(t)

	other := x.meta.another(t)
	if out := refused(t, x.lines(other.url)); !strings.Contains(out, "of two stores") {
		t.Errorf("empty metadata and the blobs of a store:\n%s", out)
	}

	x.meta.kill()
	if err := os.RemoveAll(x.meta.dir); err != nil {
		t.Fatal(err)
	}
	copyFolder(t, saved, x.meta.dir)
	x.meta.start()
	a.Start()
	if !strings.Contains(a.Log(), "metadata are older than the blobs") {
		t.Errorf("log:\n%s", a.Log())
	}
	c = s3Client(t, a)
	wantObject(t, c, "early", big)
	for i := range 4 {
		if err := put(c, fmt.Sprint("new", i), big); err != nil {
			t.Errorf("after the restore: %v", err)
		}
	}
	now := x.blobNames(t)
	for name := range later {
		if !now[name] {
			t.Errorf("blob %s is gone", name)
		}
	}
	a.Stop()
	x.blobs.empty(t)
	if out := refused(t, x.conf); !strings.Contains(out, "has no store") {
		t.Errorf("a bucket that was emptied:\n%s", out)
	}
}

// copyFolder copies a folder with the owners of its files.
func copyFolder(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
