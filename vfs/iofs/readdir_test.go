package iofs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"testing"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs"
	"ogw/vfs/iofs"
)

// scansKV counts the pairs that scans meet.
type scansKV struct {
	cluster.KV
	pairs int
}

func (k *scansKV) View(ctx context.Context, fn func(cluster.Reader) error) error {
	return k.KV.View(ctx, func(r cluster.Reader) error { return fn(scansReader{r, k}) })
}

type scansReader struct {
	cluster.Reader
	k *scansKV
}

func (r scansReader) Scan(start, end []byte, o cluster.ScanOptions, fn func(key, value []byte) error) error {
	return r.Reader.Scan(start, end, o, func(k, v []byte) error {
		r.k.pairs++
		return fn(k, v)
	})
}

// Who reads a directory a few entries at a time reads each once.
func TestReadDirFew(t *testing.T) {
	c := mem.New(mem.Options{})
	kv := &scansKV{KV: c.KV}
	c.KV = kv
	v, err := vfs.Open(bg, c, vfs.Config{NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(v.Close(bg), c.Close()); err != nil {
			t.Error(err)
		}
	}()
	const names = 100
	b := mkdir(t, v, vfs.RootIno, "bucket")
	for i := range names {
		write(t, v, b, fmt.Sprintf("f%03d", i), "x")
	}
	fsys, err := iofs.New(bg, v, vfs.Root, "/bucket")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := fsys.Open(".")
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	kv.pairs = 0
	for n := 0; ; {
		list, err := dir.(fs.ReadDirFile).ReadDir(10)
		if errors.Is(err, io.EOF) {
			if n != names {
				t.Errorf("%d entries, want %d", n, names)
			}
			break
		}
		if err != nil || len(list) != 10 {
			t.Fatalf("%d entries, %v", len(list), err)
		}
		n += len(list)
	}
	if kv.pairs != names {
		t.Errorf("%d entries were read, want %d", kv.pairs, names)
	}
}
