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
