package engines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"testing"

	"github.com/minio/minio-go/v7"

	"ogw/integration/doors"
	"ogw/integration/testenv"
	"ogw/integration/testenv/nfsclient"
)

// dialNFS mounts the whole store at a gateway.
func dialNFS(t *testing.T, s *testenv.Server) *doors.NFS {
	t.Helper()
	d, err := doors.DialNFS(s.NFS, "/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// readAll reads what a client has open, from its beginning on.
func readAll(f io.ReaderAt) (string, error) {
	b, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<30))
	return string(b), err
}

// files changes files at each gateway and looks at the other one at once, over NFS and S3.
func files(t *testing.T, a, b *testenv.Server, ca, cb *minio.Client) {
	na, nb := dialNFS(t, a), dialNFS(t, b)
	if err := na.Write("bkt/file", "first"); err != nil {
		t.Fatal(err)
	}
	fa, ea := na.Open("bkt/file")
	fb, eb := nb.Open("bkt/file")
	if err := errors.Join(ea, eb); err != nil {
		t.Fatal(err)
	}
	for i := range 60 {
		from, to, other, c := na, nb, fb, cb
		if i%2 == 1 {
			from, to, other, c = nb, na, fa, ca
		}
		text := fmt.Sprint("text ", i, strings.Repeat("x", i*700)) // inline, and blobs
		var err error
		if i%5 == 4 {
			err = put(map[bool]*minio.Client{true: ca, false: cb}[c == cb], "file", []byte(text))
		} else {
			err = from.Write("bkt/file", text)
		}
		if err != nil {
			t.Fatal(err)
		}
		info, fh, err := to.Lookup("bkt/file")
		if err != nil {
			t.Fatal(err)
		}
		attr, err := to.GetAttr(fh)
		if err != nil || info.Size() != int64(len(text)) || attr.Size() != int64(len(text)) {
			t.Fatalf("round %d: %d and %d bytes, want %d, %v", i, info.Size(), attr.Size(), len(text), err)
		}
		if got, err := readAll(other); err != nil || got != text {
			t.Fatalf("round %d: %d bytes of %d, %v", i, len(got), len(text), err)
		}
		wantObject(t, c, "file", []byte(text))
	}
	if err := na.Rename("bkt/file", "bkt/renamed"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := nb.Lookup("bkt/file"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the old name: %v", err)
	}
	if _, _, err := nb.Lookup("bkt/renamed"); err != nil {
		t.Error(err)
	}
	if err := nb.Remove("bkt/renamed"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := na.Lookup("bkt/renamed"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was removed: %v", err)
	}
}

const (
	// listedFiles are in the directory that is listed, and as many come and go.
	listedFiles = 400
	// listedBytes is how long an answer may get: some ten names.
	listedBytes = 512
)

// listings reads a directory of which every second page comes from the other gateway, while
// names come and go through both. What stays is listed once.
func listings(t *testing.T, a, b *testenv.Server, ca, cb *minio.Client) {
	stays, comes := func(i int) string { return fmt.Sprintf("listed/%03d stays", i) }, func(i int) string { return fmt.Sprintf("listed/%03d comes", i) }
	var made sync.WaitGroup
	for w, c := range []*minio.Client{ca, cb} {
		made.Go(func() {
			for i := w; i < listedFiles; i += 2 {
				if err := errors.Join(put(c, stays(i), nil), put(c, comes(i), nil)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	made.Wait()
	ctx, stop := context.WithCancel(t.Context())
	var changes sync.WaitGroup
	defer changes.Wait()
	defer stop()
	for w, c := range []*minio.Client{ca, cb} {
		changes.Go(func() {
			for i := w; ctx.Err() == nil; i = (i + 2) % listedFiles {
				err := c.RemoveObject(ctx, "bkt", comes(i), minio.RemoveObjectOptions{})
				if err = errors.Join(err, put(c, comes((i+listedFiles/2)%listedFiles), nil)); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	gateways := make([]*nfsclient.Conn, 2)
	for i, s := range []*testenv.Server{a, b} {
		c, err := nfsclient.Dial("", s.NFS)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Net.Close()
		gateways[i] = c
	}
	bucket, err := topHandle(gateways[0], "bkt")
	if err != nil {
		t.Fatal(err)
	}
	st, dir, err := gateways[1].Lookup(bucket, "listed")
	if err := statusErr(st, err); err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		names, pages := listInTurns(t, gateways, dir)
		for i := range listedFiles {
			if n := names[strings.TrimPrefix(stays(i), "listed/")]; n != 1 {
				t.Errorf("round %d: %s is listed %d times in %d pages", round, stays(i), n, pages)
			}
		}
	}
}

// listInTurns lists a directory, each page at the next gateway. Where a page ends at a name
// that goes, its cookie may be unknown to the next gateway, and the listing starts over: so
// pages end at names that stay.
func listInTurns(t *testing.T, gateways []*nfsclient.Conn, dir []byte) (names map[string]int, pages int) {
	t.Helper()
	names = map[string]int{}
	cookie := uint64(0)
	for end := false; !end; pages++ {
		st, list, last, err := gateways[pages%len(gateways)].Readdir(dir, cookie, listedBytes)
		if err := statusErr(st, err); err != nil {
			t.Fatal(err)
		}
		end = last
		for i := len(list); !last && i > 0 && strings.HasSuffix(list[i-1].Name, "comes"); i-- {
			list = list[:i-1]
		}
		if len(list) == 0 && !last {
			t.Fatalf("a page without a name that stays, after %d pages", pages)
		}
		for _, e := range list {
			names[e.Name]++
			cookie = e.Cookie
		}
	}
	return names, pages
}

// writers have ranges of one file each, and write through both gateways: what was
// acknowledged to one of them it finds at the other gateway.
func writers(t *testing.T, a, b *testenv.Server, ca *minio.Client) {
	const number, slot, rounds = 4, 3000, 25
	if err := put(ca, "slots", bytes.Repeat([]byte("-"), number*slot)); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for w := range number {
		mine, other := dialNFS(t, a), dialNFS(t, b)
		if w%2 == 1 {
			mine, other = other, mine
		}
		f, e1 := mine.Open("bkt/slots")
		g, e2 := other.Open("bkt/slots")
		if err := errors.Join(e1, e2); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			for i := range rounds {
				text := bytes.Repeat([]byte{byte('a' + (i+w)%26)}, slot)
				_, e1 := f.Seek(int64(w*slot), io.SeekStart)
				_, e2 := f.Write(text)
				got := make([]byte, slot)
				_, e3 := io.ReadFull(io.NewSectionReader(g, int64(w*slot), slot), got)
				if err := errors.Join(e1, e2, e3); err != nil || !bytes.Equal(got, text) {
					t.Errorf("writer %d, round %d: %v, other bytes: %v", w, i, err, !bytes.Equal(got, text))
					return
				}
			}
		})
	}
	wg.Wait()
	if err := ca.RemoveObject(context.Background(), "bkt", "slots", minio.RemoveObjectOptions{}); err != nil {
		t.Error(err)
	}
}

// removedOpen removes, through one gateway, what the other one has open.
func (x *shared) removedOpen(t *testing.T, a, b *testenv.Server, ca *minio.Client) {
	waitFor(t, func() bool { return len(x.blobNames(t)) == 0 })
	text := string(big[:1<<20])
	if err := errors.Join(put(ca, "open", []byte(text)), put(ca, "other", []byte(text))); err != nil {
		t.Fatal(err)
	}
	na, nb := dialNFS(t, a), dialNFS(t, b)
	f, err := nb.Open("bkt/open")
	if err != nil {
		t.Fatal(err)
	}
	reads := func() {
		t.Helper()
		if got, err := readAll(f); err != nil || got != text {
			t.Fatalf("%d bytes of %d, %v", len(got), len(text), err)
		}
	}
	reads()
	before := len(x.blobNames(t))
	if err := errors.Join(na.Remove("bkt/open"), na.Remove("bkt/other")); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { // the collector has been there
		reads() // which keeps it open
		return len(x.blobNames(t)) < before
	})
	reads()
	waitFor(t, func() bool { return len(x.blobNames(t)) == 0 }) // nobody has it open any more
	if _, err := readAll(f); err == nil {
		t.Error("it can be read still")
	}
}
