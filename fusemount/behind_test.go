package fusemount

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs"
)

// strictKV counts what waits for the disk.
type strictKV struct {
	cluster.KV
	waits atomic.Int64
}

func (kv *strictKV) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	if !cluster.IsRelaxed(ctx) {
		kv.waits.Add(1)
	}
	return kv.KV.Update(ctx, fn)
}

func (kv *strictKV) Sync(ctx context.Context) error {
	kv.waits.Add(1)
	return kv.KV.Sync(ctx)
}

// With flush_behind, close does not wait for the disk, and fsync does. What was closed is
// stored when the mount ends.
func TestFlushBehind(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		const files = 200
		clu := mem.New(mem.Options{})
		kv := &strictKV{KV: clu.KV}
		clu.KV = kv
		fs, err := vfs.Open(bg, clu, vfs.Config{})
		must(t, err)
		t.Cleanup(func() { must(t, errors.Join(fs.Close(bg), clu.Close())) })
		top, s := mountFS(t, fs, Options{Transport: over, FlushBehind: true})
		dir := filepath.Join(top, "bucket")
		must(t, os.Mkdir(dir, 0o755))
		name := func(i int) string { return filepath.Join(dir, fmt.Sprint("f", i)) }
		make := func(sync bool) int64 {
			before := kv.waits.Load()
			for i := range files {
				f, err := os.Create(name(i))
				must(t, err)
				_, err = fmt.Fprint(f, i)
				must(t, err)
				if sync {
					must(t, f.Sync())
				}
				must(t, f.Close())
				if !sync {
					continue
				}
				must(t, os.Remove(name(i)))
			}
			return kv.waits.Load() - before
		}
		if n := make(true); n < files {
			t.Errorf("%d of %d calls of fsync waited for the disk", n, files)
		}
		if n := make(false); n > files/10 { // what the background does
			t.Errorf("%d of %d closes waited for the disk", n, files)
		}
		for i := range files {
			got, err := os.ReadFile(name(i))
			if err != nil || string(got) != fmt.Sprint(i) {
				t.Fatalf("%s holds %q, %v", name(i), got, err)
			}
		}
		before := kv.waits.Load()
		must(t, s.Unmount())
		s.Wait()
		if kv.waits.Load() == before {
			t.Error("unmounted, and nothing waited for the disk")
		}
	})
}
