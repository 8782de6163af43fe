package s3

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ogw/cluster/local"
	"ogw/httpapi"
	"ogw/vfs"
	"ogw/vfs/clients/guess"
	"ogw/vfs/users"
)

// maxHeadAllocations is what a signed HEAD takes of the heap, the response's map too.
const maxHeadAllocations = 31

// openLocal is a door over the embedded engine.
func openLocal(b *testing.B) *door {
	b.Helper()
	clu, err := local.Open(bg, local.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	fs, err := vfs.Open(bg, clu, vfs.Config{})
	if err != nil {
		b.Fatal(err)
	}
	u := users.User{Name: "alice", UID: 1001, GID: 100, Keys: []users.AccessKey{{ID: "KEYalice", Secret: secretOf("alice")}}}
	if err := fs.Users().Add(bg, u); err != nil {
		b.Fatal(err)
	}
	d := &door{t: b, fs: fs, srv: New(fs, Config{Region: "us-east-1"})}
	d.url = serve(b, d.srv)
	b.Cleanup(func() {
		fs.Close(bg)
		clu.Close()
	})
	d.bucket("alice", "bench")
	return d
}

func serve(b *testing.B, h http.Handler) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	srv := httpapi.NewServer(h, New(nil, Config{}).cfg.Logger)
	go srv.Serve(l)
	b.Cleanup(func() { srv.Close() })
	return "http://" + l.Addr().String()
}

var benchSizes = []int{4 << 10, 1 << 20, 64 << 20}

// each runs fn from so many clients at once, each with its own connection.
func each(b *testing.B, clients, size int, fn func(client *http.Client, i int)) {
	b.Helper()
	b.SetBytes(int64(size))
	b.SetParallelism(max(1, clients/2))
	b.ResetTimer()
	if clients == 1 {
		c := &http.Client{Transport: &http.Transport{}}
		for i := 0; b.Loop(); i++ {
			fn(c, i)
		}
		return
	}
	b.RunParallel(func(pb *testing.PB) {
		c := &http.Client{Transport: &http.Transport{}}
		for i := 0; pb.Next(); i++ {
			fn(c, i)
		}
	})
}

func fetch(b *testing.B, c *http.Client, r *http.Request, buf []byte) {
	res, err := c.Do(r)
	if err != nil {
		b.Error(err)
		return
	}
	defer res.Body.Close()
	if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, res.Body, buf); err != nil || res.StatusCode != 200 {
		b.Errorf("%d %v", res.StatusCode, err)
	}
}

// BenchmarkGet: the door, beside a bare file server in the same run.
func BenchmarkGet(b *testing.B) {
	for _, size := range benchSizes {
		for _, clients := range []int{1, 16} {
			body := randomBytes(size, 1)
			b.Run(fmt.Sprintf("door/%d/%d", size, clients), func(b *testing.B) {
				d := openLocal(b)
				if res, got := d.raw("alice", "PUT", "/bench/k", body, nil); res.StatusCode != 200 {
					b.Fatal(got)
				}
				each(b, clients, size, func(c *http.Client, i int) {
					r := d.request("GET", "/bench/k", nil, nil)
					d.sign(r, "alice", nil, time.Now())
					fetch(b, c, r, make([]byte, 256<<10))
				})
			})
			b.Run(fmt.Sprintf("bare/%d/%d", size, clients), func(b *testing.B) {
				dir := b.TempDir()
				if err := os.WriteFile(filepath.Join(dir, "k"), body, 0o600); err != nil {
					b.Fatal(err)
				}
				url := serve(b, http.FileServer(http.Dir(dir)))
				each(b, clients, size, func(c *http.Client, i int) {
					r, _ := http.NewRequest("GET", url+"/k", nil)
					fetch(b, c, r, make([]byte, 256<<10))
				})
			})
		}
	}
}

// BenchmarkPut: durable PUTs with an unsigned payload.
func BenchmarkPut(b *testing.B) {
	for _, size := range benchSizes {
		for _, clients := range []int{1, 16} {
			body := randomBytes(size, 1)
			b.Run(fmt.Sprintf("%d/%d", size, clients), func(b *testing.B) {
				d := openLocal(b)
				each(b, clients, size, func(c *http.Client, i int) {
					r, _ := http.NewRequest("PUT", fmt.Sprintf("%s/bench/%p-%d", d.url, c, i%64), bytes.NewReader(body))
					r.Header.Set("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD")
					d.sign(r, "alice", nil, time.Now())
					fetch(b, c, r, nil)
				})
			})
		}
	}
}

// BenchmarkList: a page of 1000 keys.
func BenchmarkList(b *testing.B) {
	d := openLocal(b)
	for i := range 3000 {
		if _, err := d.fs.PutObject(bg, vfs.ObjectName{Bucket: "bench", Key: fmt.Sprintf("key-%09d", i)}, bytes.NewReader(nil), vfs.PutOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	c := &http.Client{}
	buf := make([]byte, 64<<10)
	for b.Loop() {
		r := d.request("GET", "/bench?list-type=2&start-after=key-000001000", nil, nil)
		d.sign(r, "alice", nil, time.Now())
		fetch(b, c, r, buf)
	}
}

// discard is a ResponseWriter without a connection.
type discard struct{ h http.Header }

func (d *discard) Header() http.Header               { return d.h }
func (d *discard) Write(p []byte) (int, error)       { return len(p), nil }
func (d *discard) WriteHeader(int)                   {}
func (d *discard) SetReadDeadline(t time.Time) error { return nil }
func (d *discard) SetWriteDeadline(time.Time) error  { return nil }

// signedRequest is a request of alice's for an object, as a server reads it.
func signedRequest(t testing.TB, d *door, method, target string, payload []byte) *http.Request {
	out := d.request(method, target, payload, nil)
	d.sign(out, "alice", payload, time.Now())
	var wire bytes.Buffer
	if err := out.Write(&wire); err != nil {
		t.Fatal(err)
	}
	in, err := http.ReadRequest(bufio.NewReader(&wire))
	if err != nil {
		t.Fatal(err)
	}
	in.RemoteAddr = "127.0.0.1:1"
	return in
}

// BenchmarkHandler: what small requests cost above net/http, with the count of wrong
// signatures that a gateway has.
func BenchmarkHandler(b *testing.B) {
	d := openLocal(b)
	d.srv = New(d.fs, Config{Region: "us-east-1", Guesses: guess.New()})
	body := randomBytes(4<<10, 1)
	if res, got := d.raw("alice", "PUT", "/bench/k", body, nil); res.StatusCode != 200 {
		b.Fatal(got)
	}
	for _, method := range []string{"HEAD", "GET", "PUT"} {
		b.Run(method, func(b *testing.B) {
			var payload []byte
			if method == "PUT" {
				payload = body
			}
			in := signedRequest(b, d, method, "/bench/k", payload)
			b.ReportAllocs()
			before := cpu(b)
			for b.Loop() {
				r := *in
				r.Body = io.NopCloser(bytes.NewReader(payload))
				d.srv.ServeHTTP(&discard{h: http.Header{}}, &r)
			}
			b.ReportMetric(float64(cpu(b)-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

// TestHeadAllocations: what a signed HEAD keeps while it looks is in few pieces. An
// allocation more is one for each request.
func TestHeadAllocations(t *testing.T) {
	d := openDoor(t, Config{Guesses: guess.New()})
	d.bucket("alice", "heads")
	d.wantRaw("alice", "PUT", "/heads/k", randomBytes(4<<10, 1), nil, 200, "")
	in := signedRequest(t, d, "HEAD", "/heads/k", nil)
	n := testing.AllocsPerRun(500, func() {
		r := *in
		w := discard{h: http.Header{}}
		d.srv.ServeHTTP(&w, &r)
	})
	if n > maxHeadAllocations {
		t.Errorf("%v allocations, want at most %d", n, maxHeadAllocations)
	}
}
