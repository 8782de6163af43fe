package httpapi

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"ogw/httpapi/fair"

	"golang.org/x/sys/unix"
)

// paged is a source that splices, but what declines says, of which it has put some
// into the pipe before.
type paged struct {
	f        *os.File
	declines func(off int64) bool
	spliced  atomic.Int64
}

func (p *paged) ReadAt(b []byte, off int64) (int, error) { return p.f.ReadAt(b, off) }

func (p *paged) Splice(w int, off, n int64) (int64, error) {
	n = min(n, 600_001) // pieces are of any length
	declined := p.declines != nil && p.declines(off)
	if declined && off%2 == 0 {
		return 0, errors.New("declined at once")
	}
	if declined {
		n = 5
	}
	k, err := unix.Splice(int(p.f.Fd()), &off, w, nil, int(n), unix.SPLICE_F_NONBLOCK)
	if err != nil || declined {
		return 0, errors.Join(errors.New("declined"), err)
	}
	p.spliced.Add(k)
	return k, nil
}

// paging serves src through the listeners of a door. It returns a connection to it,
// and how responses ended.
func paging(t *testing.T, src io.ReaderAt, size int64, stall time.Duration) (net.Conn, <-chan error) {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	lazy := LazyDeadlines(inner, NewSends(1)).(*lazyListener)
	lazy.stall = stall
	ended := make(chan error, 16)
	server := NewServer(Frame(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		off, _ := strconv.ParseInt(r.URL.Query().Get("off"), 10, 64)
		w.Header().Set("Content-Length", strconv.FormatInt(size-off, 10))
		w.(*response).pace.limit = stall
		err := Respond(w, 200, src, off, size-off)
		ended <- err
		if err != nil {
			panic(http.ErrAbortHandler)
		}
	}), FrameConfig{Door: "test", Logger: quiet()}), quiet())
	server.ConnContext = ConnContext
	go server.Serve(fair.Listen(lazy, fair.Limits{Connections: 10}))
	t.Cleanup(func() { server.Close() })
	c, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, ended
}

// pagedFile returns a file of size bytes, and them.
func pagedFile(t *testing.T, size int) (*os.File, []byte) {
	t.Helper()
	data := pattern(size)
	path := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f, data
}

// TestSplicedResponse: what a source splices arrives as it is, from any offset, whatever
// the source declines, and the connection serves the next request.
func TestSplicedResponse(t *testing.T) {
	const size = 5<<20 + 77
	f, data := pagedFile(t, size)
	for _, test := range []struct {
		name     string
		declines func(off int64) bool
		least    int64 // bytes that are spliced of each response
	}{
		{"all", nil, size - 100_000},
		{"the first", func(off int64) bool { return off < 1<<20 }, 1 << 20},
		{"each second", func(off int64) bool { return off/(1<<20)%2 == 1 }, 1 << 20},
		{"none", func(int64) bool { return true }, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			src := &paged{f: f, declines: test.declines}
			c, _ := paging(t, src, size, StallTime)
			in := bufio.NewReader(c)
			for _, off := range []int{0, 1, 100_000, size - 100, 3} {
				src.spliced.Store(0)
				fmt.Fprintf(c, "GET /?off=%d HTTP/1.1\r\nHost: a\r\n\r\n", off)
				resp, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(resp.Body)
				if err != nil || !bytes.Equal(got, data[off:]) {
					t.Fatalf("from %d: %d bytes, %v, or others", off, len(got), err)
				}
				if n := src.spliced.Load(); size-off > 1<<20 && n < test.least || test.least == 0 && n > 0 {
					t.Errorf("from %d: %d bytes were spliced", off, n)
				}
			}
		})
	}
}

// TestSplicedNotToFrames: what passes through TLS is read.
func TestSplicedNotToFrames(t *testing.T) {
	f, _ := pagedFile(t, 2<<20)
	src := &paged{f: f}
	w := &response{rec: &Record{}, conn: t.Context()}
	if sp := splicesOf(w, src, largeSendBytes); sp.fill(0, 1<<20) != 0 || src.spliced.Load() != 0 {
		t.Error("without a connection")
	}
}

// TestSplicedSourceFails: a source that has no more breaks the connection off, after
// what it had.
func TestSplicedSourceFails(t *testing.T) {
	f, data := pagedFile(t, 2<<20)
	c, _ := paging(t, &paged{f: f}, 3<<20, StallTime)
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(resp.Body)
	if !errors.Is(err, io.ErrUnexpectedEOF) || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// TestSplicedClientStalls: a client that takes nothing is dropped, one that is gone
// ends the response.
func TestSplicedClientStalls(t *testing.T) {
	const size = 32 << 20
	f, _ := pagedFile(t, size)
	for _, gone := range []bool{false, true} {
		src := &paged{f: f}
		c, ended := paging(t, src, size, 200*time.Millisecond)
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		if gone {
			if _, err := io.ReadFull(c, make([]byte, 100)); err != nil {
				t.Fatal(err)
			}
			c.Close()
		}
		var sent *SendError
		if err := <-ended; !errors.As(err, &sent) || !gone && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("gone %v: %v", gone, err)
		}
		if src.spliced.Load() == 0 {
			t.Error("nothing was spliced")
		}
	}
}
