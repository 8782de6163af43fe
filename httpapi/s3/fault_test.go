package s3

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs"
)

// A failing store is reported in S3's terms, and nothing is half-written.
func TestStoreFaults(t *testing.T) {
	faults := &mem.Faults{}
	d := openDoorOn(t, Config{}, mem.Options{Faults: faults})
	c := d.bucket("alice", "faults")
	before, after := randomBytes(3<<20, 1), randomBytes(3<<20, 2)
	d.wantRaw("alice", "PUT", "/faults/k", before, nil, 200, "")
	for _, f := range []struct {
		err    error
		op     mem.Op
		status int
		code   string
	}{
		{cluster.ErrNoSpace, mem.OpBlobWrite, 507, "InsufficientStorage"},
		{cluster.ErrNoSpace, mem.OpBlobCommit, 507, "InsufficientStorage"},
		{cluster.ErrReadOnly, mem.OpBlobCreate, 503, "ServiceUnavailable"},
		{cluster.ErrUnavailable, mem.OpBlobWrite, 503, "ServiceUnavailable"},
		{cluster.ErrUnavailable, mem.OpCommit, 503, "ServiceUnavailable"},
		{cluster.ErrConflict, mem.OpUpdate, 503, "SlowDown"},
	} {
		faults.FailFrom(1, f.err, f.op)
		d.wantRaw("alice", "PUT", "/faults/k", after, nil, f.status, "<Code>"+f.code)
		faults.Clear()
		if got := get(t, c, "faults", "k"); got != string(before) {
			t.Fatalf("%v: the object changed", f.op)
		}
	}
	// Every call in turn fails once: the object is the old or the new one.
	for n := 1; ; n++ {
		faults.FailAt(n, cluster.ErrUnavailable)
		res, _ := d.raw("alice", "PUT", "/faults/k", after, nil)
		calls := faults.Calls()
		faults.Clear()
		got := get(t, c, "faults", "k")
		if res.StatusCode == 200 && got != string(after) || got != string(before) && got != string(after) {
			t.Fatalf("call %d: %d, %d bytes", n, res.StatusCode, len(got))
		}
		if n > calls {
			break
		}
		d.wantRaw("alice", "PUT", "/faults/k", before, nil, 200, "")
	}
}

func TestReadFaults(t *testing.T) {
	faults := &mem.Faults{}
	d := openDoorOn(t, Config{}, mem.Options{Faults: faults})
	d.bucket("alice", "faults")
	body := randomBytes(8<<20, 1)
	d.wantRaw("alice", "PUT", "/faults/k", body, map[string]string{"X-Amz-Meta-A": "b"}, 200, "")
	faults.FailFrom(1, cluster.ErrCorrupt, mem.OpBlobRead)
	res, _ := d.wantRaw("alice", "GET", "/faults/k", nil, map[string]string{"Range": "bytes=5-"}, 500, "<Code>InternalError")
	for _, name := range []string{"ETag", "X-Amz-Meta-A", "Content-Range", "Last-Modified", "Accept-Ranges"} {
		if res.Header.Get(name) != "" {
			t.Errorf("the error has the object's %s", name)
		}
	}
	faults.FailFrom(1, cluster.ErrUnavailable, mem.OpBlobRead)
	d.wantRaw("alice", "GET", "/faults/k", nil, nil, 503, "<Code>ServiceUnavailable")
	// Once bytes are out, only a broken connection notifies the client.
	faults.FailFrom(3, cluster.ErrCorrupt, mem.OpBlobRead)
	r := d.request("GET", "/faults/k", nil, nil)
	d.sign(r, "alice", nil, time.Now())
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err == nil || len(got) >= len(body) || !bytes.HasPrefix(body, got) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	faults.Clear()
}

// All errors of the store at the listing door.
func TestListFaults(t *testing.T) {
	faults := &mem.Faults{}
	d := openDoorOn(t, Config{}, mem.Options{Faults: faults})
	put(t, d.bucket("alice", "faults"), "faults", "k", "v")
	for n := 1; ; n++ {
		faults.FailAt(n, cluster.ErrUnavailable)
		res, body := d.raw("alice", "GET", "/faults?list-type=2", nil, nil)
		done := n > faults.Calls()
		faults.Clear()
		if done {
			if res.StatusCode != 200 {
				t.Errorf("%d %s", res.StatusCode, body)
			}
			return
		}
		if res.StatusCode != 503 || !strings.Contains(body, "ServiceUnavailable") {
			t.Error(fmt.Sprint("call ", n, ": ", res.StatusCode, body))
		}
	}
}

// TestReadsNoMore: of an object without a stored checksum, as mounts leave it, nothing is
// read for one: it would be all, before the first byte is sent.
func TestReadsNoMore(t *testing.T) {
	reads := &mem.Faults{}
	d := openDoorOn(t, Config{}, mem.Options{Faults: reads})
	d.bucket("alice", "ranges")
	body := randomBytes(24<<20, 1)
	d.wantRaw("alice", "PUT", "/ranges/k", body, nil, 200, "")
	a, err := d.fs.Resolve(bg, vfs.Root, "/ranges/k", true)
	if err != nil {
		t.Fatal(err)
	}
	f, err := d.fs.Open(bg, vfs.Root, a.Ino, vfs.OpenWrite)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(bg, []byte("written"), 100); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(bg); err != nil {
		t.Fatal(err)
	}
	copy(body[100:], "written")
	ask := func(method, query, spec, mode string, status int) (http.Header, int) {
		t.Helper()
		h := map[string]string{"X-Amz-Checksum-Mode": mode}
		if spec != "" {
			h["Range"] = spec
		}
		reads.FailAt(0, nil, mem.OpBlobRead) // begins to count
		res, _ := d.wantRaw("alice", method, "/ranges/k"+query, nil, h, status, "")
		return res.Header, reads.Calls()
	}
	for _, c := range []struct {
		method, query, spec string
		status              int
	}{
		{"GET", "", "", 200}, {"HEAD", "", "", 200}, {"HEAD", "", "bytes=9-5", 200}, // which is no range
		{"GET", "", "bytes=5-9", 206}, {"HEAD", "", "bytes=5-9", 206}, {"GET", "", "bytes=-1", 206}, {"HEAD", "?partNumber=1", "", 206},
		{"GET", "", "bytes=99999999-", 416}, {"HEAD", "?partNumber=2", "", 416},
	} {
		_, plain := ask(c.method, c.query, c.spec, "", c.status)
		h, n := ask(c.method, c.query, c.spec, "ENABLED", c.status)
		if n > plain || h.Get("X-Amz-Checksum-Crc64nvme") != "" {
			t.Errorf("%+v: %d reads, %d without a checksum; %v", c, n, plain, h)
		}
	}
	// What is asked for by itself is computed, and remembered.
	sum := algorithms[0].make()
	sum.Write(body)
	text := encode64(sum.Sum(nil))
	d.wantRaw("alice", "GET", "/ranges/k?attributes", nil, map[string]string{"X-Amz-Object-Attributes": "Checksum"}, 200, text)
	if h, n := ask("HEAD", "", "", "ENABLED", 200); n != 0 || h.Get("X-Amz-Checksum-Crc64nvme") != text {
		t.Errorf("%d reads, %v", n, h)
	}
}
