package engines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"ogw/integration/testenv"
	"ogw/integration/testenv/cputime"
	"ogw/integration/testenv/nfsclient"
)

const (
	// benchRounds of each row and of what it is compared with, in turns.
	benchRounds = 5
	benchTime   = 2 * time.Second // of each
	benchSmall  = 1 << 10         // bytes of a small object
	benchConns  = 40              // to PostgreSQL, which takes a hundred by default
	benchLarge  = 64 << 20
)

// figure is a rate, and the one that it is compared with.
type figure struct {
	name, beside string
	clients      int
	target       float64 // of the other rate; 0: none
	ours, other  func(client, i int) error
}

// TestBench measures a gateway beside the servers that it stands on, in turns, each with as
// many clients (make bench-cluster). All of them share one machine.
func TestBench(t *testing.T) {
	if os.Getenv("OGW_BENCH_CLUSTER") == "" {
		t.Skip("takes minutes of a quiet machine: make bench-cluster (OGW_BENCH_CLUSTER=1)")
	}
	t.Run("etcd", func(t *testing.T) {
		benchMetadata(t, startShared(t, func(t *testing.T) *metaServer { return etcdMeta(t) }))
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		benchMetadata(t, startShared(t, func(t *testing.T) *metaServer {
			p := testenv.StartPostgres(t)
			return postgresMeta(t, p, p.Addr())
		}))
	})
}

func benchMetadata(t *testing.T, x *shared) {
	x.manyGateways()
	a := x.gateway(nil)
	x.gateway(a)
	admin := s3Client(t, a)
	if err := admin.MakeBucket(context.Background(), "bkt", minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := admin.SetBucketPolicy(context.Background(), "bkt", everybodys); err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(os.Getenv("OGW_BENCH_ROWS"))
	for _, f := range append(append(smallFigures(t, x, a), nameFigures(t, a)...), largeFigures(t, x, a)...) {
		if rows.MatchString(f.name) {
			f.measure(t, a)
		}
	}
}

// smallFigures are those of objects that lie in the metadata.
func smallFigures(t *testing.T, x *shared, a *testenv.Server) []figure {
	const clients = 64
	body := bytes.Repeat([]byte("0123456789abcdef"), benchSmall/16)
	bare, read := x.meta.bare(t, clients, body)
	web := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}, Timeout: time.Minute}
	call := func(method string, client, i int) error {
		var r io.Reader
		if method == http.MethodPut {
			r = bytes.NewReader(body)
		}
		req, err := http.NewRequest(method, fmt.Sprintf("http://%s/bkt/small/%d/%d", a.S3, client, i%100), r)
		if err != nil {
			return err
		}
		resp, err := web.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s, %w", method, resp.Status, err)
		}
		return nil
	}
	for client := range clients { // what is read
		for i := range 100 {
			if err := call(http.MethodPut, client, i); err != nil {
				t.Fatal(err)
			}
		}
	}
	with := func(method string) func(client, i int) error {
		return func(client, i int) error { return call(method, client, i) }
	}
	return []figure{
		{"PUT of 1 KiB over S3", "single puts of the engine", clients, 0.7, with(http.MethodPut), bare},
		{"GET of 1 KiB over S3", "single gets of the engine", clients, 0, with(http.MethodGet), read},
		{"HEAD over S3", "single gets of the engine", clients, 0, with(http.MethodHead), read},
	}
}

// nameFigures are those of many who make names, over NFS.
func nameFigures(t *testing.T, a *testenv.Server) []figure {
	const clients = 64
	bucket, err := nfsHandle(a, "bkt")
	if err != nil {
		t.Fatal(err)
	}
	conns, dirs := make([]*nfsclient.Conn, clients), make([][]byte, clients)
	for i := range conns {
		if conns[i], err = nfsclient.Dial("", a.NFS); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conns[i].Net.Close() })
		var st uint32
		if st, dirs[i], err = conns[i].Mkdir(bucket, fmt.Sprint("dir", i)); statusErr(st, err) != nil {
			t.Fatal(statusErr(st, err))
		}
	}
	var made atomic.Int64
	in := func(dir func(client int) []byte) func(client, i int) error {
		return func(client, _ int) error {
			st, _, err := conns[client].Create(dir(client), fmt.Sprint("file", made.Add(1)))
			return statusErr(st, err)
		}
	}
	return []figure{{"CREATE in one directory over NFS", "CREATE in a directory of each client", clients, 0.8,
		in(func(int) []byte { return bucket }), in(func(client int) []byte { return dirs[client] })}}
}

// largeFigures are those of objects that lie in S3.
func largeFigures(t *testing.T, x *shared, a *testenv.Server) []figure {
	const clients = 4
	bare, err := minio.New(x.s3.Addr(), &minio.Options{Creds: credentials.NewStaticV4(x.s3.Key, x.s3.Secret, ""), Region: "us-east-1"})
	if err != nil {
		t.Fatal(err)
	}
	body := bytes.Repeat([]byte("0123456789abcdef"), benchLarge/16)
	write := func(c *minio.Client, bucket string) func(client, i int) error {
		return func(client, _ int) error {
			_, err := c.PutObject(context.Background(), bucket, fmt.Sprint("large", client), bytes.NewReader(body), benchLarge, minio.PutObjectOptions{DisableMultipart: true})
			return err
		}
	}
	read := func(c *minio.Client, bucket string) func(client, i int) error {
		return func(client, _ int) error {
			o, err := c.GetObject(context.Background(), bucket, fmt.Sprint("large", client), minio.GetObjectOptions{})
			if err == nil {
				defer o.Close()
				_, err = io.Copy(io.Discard, o)
			}
			return err
		}
	}
	relayed, err := minio.New(benchRelay(t, x.s3.Addr()), &minio.Options{Creds: credentials.NewStaticV4(x.s3.Key, x.s3.Secret, ""), Region: "us-east-1"})
	if err != nil {
		t.Fatal(err)
	}
	ours := s3Client(t, a)
	for client := range clients { // what is read
		if err := errors.Join(write(ours, "bkt")(client, 0), write(bare, "blobs")(client, 0)); err != nil {
			t.Fatal(err)
		}
	}
	return []figure{
		{"PUT of 64 MiB over S3", "PUT to the S3 server below", clients, 0.8, write(ours, "bkt"), write(bare, "blobs")},
		{"PUT of 64 MiB through a relay", "PUT to the S3 server below", clients, 0, write(relayed, "blobs"), write(bare, "blobs")},
		{"GET of 64 MiB over S3", "GET from the S3 server below", clients, 0.8, read(ours, "bkt"), read(bare, "blobs")},
		{"GET of 64 MiB through a relay", "GET from the S3 server below", clients, 0, read(relayed, "blobs"), read(bare, "blobs")},
	}
}

// buffers are those of a relay.
type buffers struct{}

func (buffers) Get() []byte { return make([]byte, 1<<20) }
func (buffers) Put([]byte)  {}

// benchRelay is what a gateway cannot do without: each byte comes by one connection and goes by
// another one. It returns its address.
func benchRelay(t *testing.T, server string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:    func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", server },
		BufferPool: buffers{},
	}
	s := &http.Server{Handler: proxy}
	t.Cleanup(func() { s.Close() })
	go func() { _ = s.Serve(l) }()
	return l.Addr().String()
}

// measure tells the medians of both rates and of their ratios, and what an operation cost:
// the processor's time of gateway a, of the clients, and of the whole machine, in µs.
func (f *figure) measure(t *testing.T, a *testenv.Server) {
	if dir := os.Getenv("OGW_BENCH_PROFILES"); dir != "" {
		f.profile(t, a, dir)
	}
	var ours, other, ratios []float64
	var spent, spentOther cost
	for range benchRounds {
		x, y := f.rate(t, a, &spent, f.ours), f.rate(t, a, &spentOther, f.other)
		ours, other, ratios = append(ours, x), append(other, y), append(ratios, x/y)
	}
	for _, list := range [][]float64{ours, other, ratios} {
		slices.Sort(list)
	}
	ratio, verdict := ratios[benchRounds/2], ""
	if f.target > 0 {
		verdict = fmt.Sprintf(", target %.0f %%: %s", f.target*100, map[bool]string{true: "met", false: "missed"}[ratio >= f.target])
	}
	t.Logf("%s, %d clients: %.0f/s, %.0f %% (%.0f to %.0f) of %.0f/s, %s%s; CPU %s; there %s", f.name, f.clients, ours[benchRounds/2],
		ratio*100, ratios[0]*100, ratios[benchRounds-1]*100, other[benchRounds/2], f.beside, verdict, &spent, &spentOther)
}

// profile keeps a CPU profile of the gateway under the row's name.
func (f *figure) profile(t *testing.T, a *testenv.Server, dir string) {
	got := make(chan error, 1)
	go func() {
		got <- cputime.Profile(filepath.Join(a.Data, "admin.sock"), filepath.Join(dir, t.Name()[len("TestBench/"):]+"-"+strings.ReplaceAll(f.name, " ", "-")+".prof"), benchTime)
	}()
	f.rate(t, a, &cost{}, f.ours)
	if err := <-got; err != nil {
		t.Fatal(err)
	}
}

// rate is how many operations a second the clients make.
func (f *figure) rate(t *testing.T, a *testenv.Server, spent *cost, do func(client, i int) error) float64 {
	var done atomic.Int64
	errs := make([]error, f.clients)
	var wg sync.WaitGroup
	before := costNow(t, a)
	begin := time.Now()
	for client := range f.clients {
		wg.Go(func() {
			for i := 0; time.Since(begin) < benchTime && errs[client] == nil; i++ {
				errs[client] = do(client, i)
				done.Add(1)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatalf("%s: %v", f.name, err)
		}
	}
	rate := float64(done.Load()) / time.Since(begin).Seconds()
	spent.add(costNow(t, a), before, done.Load())
	return rate
}

// cost is the processor's time that operations took.
type cost struct {
	gateway, clients, machine time.Duration
	operations                int64
}

// costNow is what was spent since the machine started. The clients are this process.
func costNow(t *testing.T, a *testenv.Server) (c cost) {
	var errs [3]error
	c.gateway, errs[0] = cputime.Process(a.Process.PID())
	c.clients, errs[1] = cputime.Process(os.Getpid())
	c.machine, errs[2] = cputime.Machine()
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *cost) add(now, before cost, operations int64) {
	c.gateway += now.gateway - before.gateway
	c.clients += now.clients - before.clients
	c.machine += now.machine - before.machine
	c.operations += operations
}

func (c *cost) String() string {
	each := func(d time.Duration) int64 { return d.Microseconds() / max(1, c.operations) }
	return fmt.Sprintf("%d µs (gateway %d, clients %d)", each(c.machine), each(c.gateway), each(c.clients))
}

// bareEtcd returns a put and a linearizable get of one key.
func bareEtcd(t *testing.T, addr string, body []byte) (put, get func(client, i int) error) {
	c, ctx := etcdClient(t, addr), context.Background()
	key := func(client, i int) string { return fmt.Sprintf("bare/%d/%d", client, i%100) }
	return func(client, i int) error {
			_, err := c.Put(ctx, key(client, i), string(body))
			return err
		}, func(client, i int) error {
			_, err := c.Get(ctx, key(client, i))
			return err
		}
}

// barePostgres returns an insertion or update, and a selection, of one row.
func barePostgres(t *testing.T, p *testenv.Postgres, clients int, body []byte) (put, get func(client, i int) error) {
	sql(t, p, "CREATE TABLE bare (k text PRIMARY KEY, v bytea)")
	ctx := context.Background()
	conf, err := pgxpool.ParseConfig(p.URL(p.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	conf.MaxConns = int32(min(clients, benchConns))
	pool, err := pgxpool.NewWithConfig(ctx, conf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	key := func(client, i int) string { return fmt.Sprintf("bare/%d/%d", client, i%100) }
	return func(client, i int) error {
			_, err := pool.Exec(ctx, "INSERT INTO bare VALUES ($1, $2) ON CONFLICT (k) DO UPDATE SET v = $2", key(client, i), body)
			return err
		}, func(client, i int) error {
			var v []byte
			return pool.QueryRow(ctx, "SELECT coalesce((SELECT v FROM bare WHERE k = $1), '')", key(client, i)).Scan(&v)
		}
}
