package local

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/local/internal/record"
	"ogw/cluster/local/internal/watchdog"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// filesWith returns the files below dir that hold any of secrets.
func filesWith(t *testing.T, dir string, secrets ...string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // compacted since it was listed
			return nil
		}
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		for _, s := range secrets {
			if bytes.Contains(b, []byte(s)) {
				found = append(found, path)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestErase: what was replaced is in no file, whatever had become of it: in
// the log, in old logs, in tables, in value files.
func TestErase(t *testing.T) {
	dir := t.TempDir()
	c := openAt(t, Options{Dir: dir, memTable: 256 << 10})
	kv := c.KV.(*KV)
	put := func(key, value string) {
		t.Helper()
		if err := kv.Update(ctx, func(txn cluster.Txn) error { return txn.Set([]byte(key), []byte(value)) }); err != nil {
			t.Fatal(err)
		}
	}
	var secrets []string
	for i := range 8 {
		secrets = append(secrets, rand.Text()+rand.Text())
		for n := range 4 {
			value := secrets[i]
			if n == 3 {
				value += string(make([]byte, 2*separateBytes)) // has a file of its own
			}
			put(fmt.Sprintf("k%d%d", i, n), value)
		}
		switch {
		case i == 4:
			if err := kv.db.Compact(ctx, []byte{0}, []byte{0xff}, false); err != nil {
				t.Fatal(err)
			}
		case i < 6:
			if err := kv.db.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	put("other", "stays")
	if len(filesWith(t, dir, secrets...)) < 4 {
		t.Fatal("the secrets are not where they must be erased")
	}
	for i := range secrets {
		put(fmt.Sprintf("k%d0", i), "new")
		err := kv.Update(ctx, func(txn cluster.Txn) error {
			for n := 1; n < 4; n++ {
				if err := txn.Delete(fmt.Appendf(nil, "k%d%d", i, n)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := kv.Erase(ctx, cluster.KeyRange{Start: []byte("k"), End: []byte("l")}, cluster.KeyRange{Start: []byte("x"), End: []byte("y")}); err != nil {
		t.Fatal(err)
	}
	if found := filesWith(t, dir, secrets...); found != nil {
		t.Errorf("found in %q", found)
	}
	check := func(kv cluster.KV) {
		t.Helper()
		err := kv.View(ctx, func(r cluster.Reader) error {
			for key, want := range map[string]string{"k00": "new", "k70": "new", "k01": "", "other": "stays"} {
				if v, err := r.Get([]byte(key)); string(v) != want || err != nil {
					t.Errorf("%s: %q %v", key, v, err)
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	check(kv)
	// The logs that were overwritten are good to be used again.
	for i := range 6 {
		put("other", "stays")
		put(fmt.Sprintf("filler%d", i), "x")
		if err := kv.db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = openAt(t, Options{Dir: dir})
	check(c.KV)
	if found := filesWith(t, dir, secrets...); found != nil {
		t.Errorf("found after a start in %q", found)
	}
}

// TestEraseWaitsForViews: what a view can still read is on the disk; Erase returns when the view
// has ended, or with an error.
func TestEraseWaitsForViews(t *testing.T) {
	dir := t.TempDir()
	kv := openAt(t, Options{Dir: dir}).KV.(*KV)
	secret := rand.Text() + rand.Text()
	set := func(value string) {
		t.Helper()
		if err := kv.Update(ctx, func(txn cluster.Txn) error { return txn.Set([]byte("k"), []byte(value)) }); err != nil {
			t.Fatal(err)
		}
	}
	secrets := cluster.KeyRange{Start: []byte("k"), End: []byte("l")}
	set(secret)
	reads, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- kv.View(ctx, func(r cluster.Reader) error {
			if _, err := r.Get([]byte("k")); err != nil {
				return err
			}
			close(reads)
			<-goOn
			if v, err := r.Get([]byte("k")); string(v) != secret || err != nil {
				return fmt.Errorf("the view reads %q %w", v, err)
			}
			return nil
		})
	}()
	<-reads
	set("new")
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	if err := kv.Erase(short, secrets); !errors.Is(err, cluster.ErrUnavailable) {
		t.Errorf("beside a view of the secret: %v", err)
	}
	erased := make(chan error, 1)
	go func() { erased <- kv.Erase(ctx, secrets) }()
	time.Sleep(50 * time.Millisecond)
	close(goOn)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := <-erased; err != nil {
		t.Error(err)
	}
	if found := filesWith(t, dir, secret); found != nil {
		t.Errorf("found in %q", found)
	}
}

// TestEraseLastLevel: what was replaced goes from a table of the last level, too, where nothing
// newer is but in tables beside it.
func TestEraseLastLevel(t *testing.T) {
	dir := t.TempDir()
	kv := openAt(t, Options{Dir: dir}).KV.(*KV)
	secret := rand.Text() + rand.Text()
	set := func(key string, value []byte) {
		t.Helper()
		if err := kv.Update(cluster.Relaxed(ctx), func(txn cluster.Txn) error { return txn.Set([]byte(key), value) }); err != nil {
			t.Fatal(err)
		}
	}
	set("k", []byte(secret))
	err := kv.View(ctx, func(r cluster.Reader) error {
		if err := r.Scan([]byte("k"), []byte("l"), cluster.ScanOptions{}, func(_, _ []byte) error { return nil }); err != nil {
			return err
		}
		set("k", []byte("new"))
		for i := range 6000 { // more than one table takes
			value := make([]byte, 4<<10)
			_, _ = rand.Read(value)
			set(fmt.Sprintf("z%d", i), value)
		}
		return kv.db.Compact(ctx, []byte{0}, []byte{0xff, 0xff}, false)
	})
	if err != nil {
		t.Fatal(err)
	}
	levels, err := kv.db.SSTables()
	if err != nil {
		t.Fatal(err)
	}
	if len(levels[len(levels)-1]) < 2 || len(filesWith(t, filepath.Join(dir, record.MetaDir), secret)) == 0 {
		t.Fatal("the secret is not where it must be erased")
	}
	if err := kv.Erase(ctx, cluster.KeyRange{Start: []byte("k"), End: []byte("l")}); err != nil {
		t.Fatal(err)
	}
	if found := filesWith(t, dir, secret); found != nil {
		t.Errorf("found in %q", found)
	}
}

// TestEraseValueFiles: what was replaced goes from files that hold other values, too, of the range
// and of tables beside it, and these stay.
func TestEraseValueFiles(t *testing.T) {
	dir := t.TempDir()
	c := openAt(t, Options{Dir: dir})
	kv := c.KV.(*KV)
	secret := rand.Text() + rand.Text()
	long := func(head string) []byte { return append([]byte(head), make([]byte, 2*separateBytes)...) }
	set := func(key string, value []byte) {
		t.Helper()
		if err := kv.Update(cluster.Relaxed(ctx), func(txn cluster.Txn) error { return txn.Set([]byte(key), value) }); err != nil {
			t.Fatal(err)
		}
	}
	set("k1", long(secret))
	set("k2", long("live"))
	set("a", long("live"))
	compact := func() {
		t.Helper()
		if err := kv.db.Compact(ctx, []byte{0}, []byte{0xff, 0xff}, false); err != nil {
			t.Fatal(err)
		}
	}
	compact() // one file, which two tables use after the next one
	for i := range 6000 {
		value := make([]byte, 4<<10)
		_, _ = rand.Read(value)
		set(fmt.Sprintf("b%d", i), value)
	}
	compact()
	files, err := kv.valueFiles()
	if err != nil {
		t.Fatal(err)
	}
	shared := slices.ContainsFunc(slices.Collect(maps.Values(files)), func(users []cluster.KeyRange) bool { return len(users) > 1 })
	set("k1", long("new"))
	if !shared || len(filesWith(t, dir, secret)) == 0 {
		t.Fatalf("the secret is not where it must be erased: %v", files)
	}
	if err := kv.Erase(ctx, cluster.KeyRange{Start: []byte("k"), End: []byte("l")}); err != nil {
		t.Fatal(err)
	}
	if found := filesWith(t, dir, secret); found != nil {
		t.Errorf("found in %q", found)
	}
	if kv.values.policy().MaxBlobReferenceDepth != separateDepth {
		t.Error("compactions go on to rewrite all values")
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	err = openAt(t, Options{Dir: dir}).KV.View(ctx, func(r cluster.Reader) error {
		for key, want := range map[string]string{"k1": "new", "k2": "live", "a": "live"} {
			if v, err := r.Get([]byte(key)); !bytes.Equal(v, long(want)) || err != nil {
				t.Errorf("%s: %d bytes, %v", key, len(v), err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestEraseFull: while no table can be written Erase ends with its context, with the store, and
// with Close, which does not wait for it for ever.
func TestEraseFull(t *testing.T) {
	for name, end := range map[string]func(c *cluster.Cluster, cancel func()) error{
		"context": func(_ *cluster.Cluster, cancel func()) error { cancel(); return context.Canceled },
		"failure": func(c *cluster.Cluster, _ func()) error {
			_ = c.KV.(*KV).health.Fail(syscall.EIO)
			return cluster.ErrFailed
		},
		"close": func(*cluster.Cluster, func()) error { return cluster.ErrClosed },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &faultFS{err: syscall.ENOSPC, sticky: true, count: func(op errorfs.Op) bool {
				return op.Kind == errorfs.OpCreate && strings.HasSuffix(op.Path, ".sst")
			}}
			o := memOptions(errorfs.Wrap(newMem(t), f))
			o.patience = 4 * testPatience
			c := openAt(t, o)
			if err := setter(c)(0); err != nil {
				t.Fatal(err)
			}
			f.at.Store(1)
			erasing, cancel := context.WithCancel(ctx)
			defer cancel()
			erased := make(chan error, 1)
			go func() { erased <- c.KV.Erase(erasing, cluster.KeyRange{Start: []byte("k"), End: []byte("l")}) }()
			waitFor(t, "the flush to fail", func() bool { return f.hit.Load() != nil })
			want := end(c, cancel)
			if name != "close" {
				if err := ends(t, "Erase", func() error { return <-erased }); !errors.Is(err, want) {
					t.Errorf("Erase: %v", err)
				}
			}
			if err := ends(t, "Close", c.Close); errors.Is(err, watchdog.ErrHangs) {
				t.Errorf("Close: %v", err)
			}
			if name == "close" {
				if err := ends(t, "Erase", func() error { return <-erased }); !errors.Is(err, want) {
					t.Errorf("Erase: %v", err)
				}
			}
		})
	}
}

// TestEraseWhileCounting: the count of live bytes after a start of a large store takes
// minutes; Erase does not wait for that, and the count comes out right.
func TestEraseWhileCounting(t *testing.T) {
	const blobs = 40_000
	fs := newMem(t)
	c := openAt(t, memOptions(fs))
	id := func(i int) cluster.BlobID { return cluster.BlobID{Content: uint64(i), Seq: uint64(i)} }
	if err := storeBlob(c.Blobs, id(0), seedBytes(1)); err != nil {
		t.Fatal(err)
	}
	x := c.Blobs.(*Blobs).index
	place, err := x.get(id(0))
	if err != nil {
		t.Fatal(err)
	}
	err = x.kv.applyInternal(func(b *pebble.Batch) error {
		for i := 1; i < blobs; i++ {
			if err := b.Set(record.BlobKey(id(i)), place.Encode(), nil); err != nil {
				return err
			}
		}
		return b.Set([]byte("k"), []byte("secret"), nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}

	var slow atomic.Bool
	slow.Store(true)
	reads := make(chan struct{}, 1)
	c = openAt(t, memOptions(errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		stack := make([]byte, 16<<10)
		if op.Kind == errorfs.OpFileReadAt && slow.Load() && strings.Contains(string(stack[:runtime.Stack(stack, false)]), "(*collector).count") {
			select {
			case reads <- struct{}{}:
			default:
			}
			time.Sleep(time.Second)
		}
		return nil
	}))))
	<-reads
	if err := c.KV.Update(ctx, func(txn cluster.Txn) error { return txn.Set([]byte("k"), []byte("new")) }); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	err = c.KV.Erase(ctx, cluster.KeyRange{Start: []byte("k"), End: []byte("l")})
	if took := time.Since(began); err != nil || took > eraseWait/2 {
		t.Errorf("%v after %v", err, took)
	}
	for i := range 3 {
		if err := storeBlob(c.Blobs, id(blobs+i), seedBytes(1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Blobs.Delete(ctx, id(1), id(blobs)); err != nil {
		t.Fatal(err)
	}
	slow.Store(false)
	waitFor(t, "the count", func() bool {
		f, ok := c.Blobs.(*Blobs).segments.Figures(place.Segment)
		return ok && f.Live == (blobs-1)*record.Bytes(place.Size)
	})
	fresh, err := c.Blobs.(*Blobs).index.get(id(blobs + 1))
	if err != nil {
		t.Fatal(err)
	}
	if f, _ := c.Blobs.(*Blobs).segments.Figures(fresh.Segment); f.Live != 2*record.Bytes(fresh.Size) {
		t.Errorf("new segment: %+v", f)
	}
}
