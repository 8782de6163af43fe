package adversary

import (
	"encoding/xml"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ogw/integration/testenv"
)

// mostGrowth is what no attack may make a server's memory grow by.
const mostGrowth = 128 << 20

// statusBytes reads a size of a process, such as VmHWM.
func statusBytes(t *testing.T, pid int, name string) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == name+":" {
			n, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	t.Fatalf("no %s", name)
	return 0
}

// bounded runs an attack and compares the peak of the server's memory with
// what it was before.
func bounded(t *testing.T, s *testenv.Server, attack func()) {
	t.Helper()
	pid := s.Process.PID()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		t.Skip("the peak of a process's memory cannot be reset here:", err)
	}
	before := statusBytes(t, pid, "VmRSS")
	attack()
	grown := statusBytes(t, pid, "VmHWM") - before
	t.Logf("grew by %d MiB", grown>>20)
	if grown > mostGrowth {
		t.Errorf("the server grew by %d MiB", grown>>20)
	}
}

// many runs fn n times, from a few clients at once.
func many(clients, n int, fn func(i int)) {
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			for i := c; i < n; i += clients {
				fn(i)
			}
		})
	}
	wg.Wait()
}

// Signatures that are wrong, each for a region of 59 KB, must leave nothing.
func TestMemoryOfWrongSignatures(t *testing.T) {
	s := newServer(t, testenv.ServerOptions{})
	alice := newPerson(t, s, "alice")
	bounded(t, s, func() {
		many(4, 3000, func(i int) {
			r, _ := http.NewRequest("GET", "http://"+s.S3+"/", nil)
			now := time.Now().UTC()
			region := fmt.Sprintf("%059000d", i)
			r.Header.Set("X-Amz-Date", now.Format("20060102T150405Z"))
			r.Header.Set("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD")
			r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+alice.key+"/"+now.Format("20060102")+"/"+region+
				"/s3/aws4_request, SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature="+strings.Repeat("0", 64))
			if resp, err := http.DefaultTransport.RoundTrip(r); err == nil {
				resp.Body.Close()
			}
		})
	})
}

// Documents of 900,000 elements, whose senders leave.
func TestMemoryOfDocuments(t *testing.T) {
	s := newServer(t, testenv.ServerOptions{})
	alice := newPerson(t, s, "alice")
	must(t, "bucket")(alice.s3(t, s, "PUT", "/docs", ""))
	status, body := alice.s3(t, s, "POST", "/docs/k?uploads", "")
	id := uploadID(t, must(t, "upload")(status, body))
	for name, c := range map[string]struct{ target, body string }{
		"DeleteObjects": {"/docs?delete", "<Delete>" + strings.Repeat("<Object/>", 900_000) + "</Delete>"},
		"keys":          {"/docs?delete", "<Delete>" + strings.Repeat("<Object><Key>k</Key></Object>", 280_000) + "</Delete>"},
		"Complete":      {"/docs/k?uploadId=" + id, "<CompleteMultipartUpload>" + strings.Repeat("<Part/>", 590_000) + "</CompleteMultipartUpload>"},
	} {
		t.Run(name, func(t *testing.T) {
			bounded(t, s, func() {
				many(16, 32, func(int) {
					r := alice.s3Request(t, s, "POST", c.target, c.body)
					conn, err := net.Dial("tcp", s.S3)
					if err != nil {
						t.Error(err)
						return
					}
					_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
					_ = r.Write(conn) // the server may end it before
					conn.Close()
				})
				time.Sleep(time.Second) // the work goes on after they left, if it does
				must(t, "the next request")(alice.s3(t, s, "GET", "/docs?location", ""))
			})
		})
	}
}

// A tree that only NFS can make must not make a bucket unlistable.
func TestListingOfDeepTree(t *testing.T) {
	s := newServer(t, testenv.ServerOptions{NFS: "[[gateway.export]]\npath = \"/\"\nsquash = \"none\"\nclients = [\"127.0.0.0/8\"]"})
	root := person{key: s.KeyID, secret: s.Secret}
	must(t, "bucket")(root.s3(t, s, "PUT", "/deep", ""))
	must(t, "object")(root.s3(t, s, "PUT", "/deep/zz", "after the tree"))
	c := dialNFS(t, s, "127.0.0.1")
	dir := c.mount("/deep")
	name := strings.Repeat("d", 100)
	for range 1500 {
		st, fh, err := c.Mkdir(dir, name)
		c.must("MKDIR", st, err)
		dir = fh
	}
	bounded(t, s, func() {
		keys, token := 0, ""
		for page := 0; ; page++ {
			target := "/deep?list-type=2"
			if token != "" {
				target += "&continuation-token=" + token
			}
			body := must(t, "a page")(root.s3(t, s, "GET", target, ""))
			var doc struct {
				Contents []struct{ Key string }
				Next     string `xml:"NextContinuationToken"`
			}
			if err := xml.Unmarshal([]byte(body), &doc); err != nil {
				t.Fatal(err)
			}
			if len(body) > 8<<20 || len(doc.Next) > 4096 || page > 10 {
				t.Fatalf("page %d: %d bytes, a token of %d", page, len(body), len(doc.Next))
			}
			for _, o := range doc.Contents {
				if len(o.Key) > 1024 {
					t.Errorf("a key of %d bytes", len(o.Key))
				}
				if o.Key == "zz" {
					keys++
				}
			}
			if token = doc.Next; token == "" {
				break
			}
		}
		if keys != 1 {
			t.Errorf("the object after the tree was listed %d times", keys)
		}
	})
}

// Readers of a large object who stop after a while: neither the server's buffers
// nor the kernel's for its sockets may grow with them.
func TestMemoryOfSlowReaders(t *testing.T) {
	s := webServer(t, testenv.ServerOptions{}, "http")
	var conns []net.Conn
	sockets := socketBytes(t)
	bounded(t, s, func() {
		conns = connect(s.S3, flood/2, "GET /open/large HTTP/1.1\r\nHost: "+s.S3+"\r\n\r\n", attacker)
		until := time.Now().Add(5 * time.Second)
		many(32, len(conns), func(i int) { // fast at first, so that the kernel gives them more
			_ = conns[i].SetReadDeadline(until)
			_, _ = io.CopyN(io.Discard, conns[i], 512<<10) // some were refused
		})
		time.Sleep(2 * time.Second) // until all stand still
	})
	grown := socketBytes(t) - sockets
	closeAll(conns)
	t.Logf("sockets grew by %d MiB", grown>>20)
	if grown > mostGrowth {
		t.Errorf("what the kernel holds for sockets grew by %d MiB", grown>>20)
	}
}

// socketBytes is what the kernel holds for TCP in the buffers of all sockets.
func socketBytes(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/net/sockstat")
	if err != nil {
		t.Skip(err)
	}
	_, rest, _ := strings.Cut(string(text), "\nTCP:")
	_, rest, _ = strings.Cut(rest, " mem ")
	var pages int64
	if _, err := fmt.Sscan(rest, &pages); err != nil {
		t.Fatalf("no memory of TCP in %q", text)
	}
	return pages * int64(os.Getpagesize())
}
