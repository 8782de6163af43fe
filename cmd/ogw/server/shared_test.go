package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/cmd/ogw/config"
	"ogw/vfs"
)

// pair is of the metadata.
type pair struct{ key, value []byte }

// serveOnce opens a store in servers that hold pairs and no blobs, with the data folder dir,
// writes and reads an object of one byte again and again, and ends. It returns the metadata
// from before that.
func serveOnce(t *testing.T, dir string, pairs []pair, text byte) (before []pair) {
	t.Helper()
	halves, log := mem.New(mem.Options{}), slog.New(slog.DiscardHandler)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(halves.KV.Update(t.Context(), func(tx cluster.Txn) error {
		for _, p := range pairs {
			if err := tx.Set(p.key, p.value); err != nil {
				return err
			}
		}
		return nil
	}))
	cfg := config.Default()
	cfg.Cluster.Dir, cfg.Cluster.Cache, cfg.Cluster.ReadCache = dir, 1<<20, 64<<20
	c, err := keepReads(halves, cfg, opener{serves: true, log: log})
	must(err)
	fs, err := vfs.Open(t.Context(), c, vfs.Config{Logger: log, NoBackground: true})
	must(err)
	must(c.KV.View(t.Context(), func(r cluster.Reader) error {
		before = nil
		return r.Scan([]byte{0}, []byte{0xff}, cluster.ScanOptions{}, func(k, v []byte) error {
			before = append(before, pair{bytes.Clone(k), bytes.Clone(v)})
			return nil
		})
	}))
	ctx, name, body := t.Context(), vfs.ObjectName{Bucket: "bucket", Key: "key"}, bytes.Repeat([]byte{text}, 1<<20)
	_, err = fs.CreateBucket(ctx, name.Bucket, nil)
	must(err)
	_, err = fs.PutObject(ctx, name, bytes.NewReader(body), vfs.PutOptions{Size: int64(len(body))})
	must(err)
	o, err := fs.GetObject(ctx, name, vfs.GetOptions{})
	must(err)
	got := make([]byte, len(body))
	if _, err = o.ReadAt(got, 0); err != io.EOF { //nolint:errorlint // as io.ReaderAt has it
		must(err)
	}
	if !bytes.Equal(got, body) {
		t.Errorf("an object of %q begins with %q", text, got[:8])
	}
	must(o.Close())
	must(fs.Close(context.Background()))
	must(c.Close())
	return before
}

// What the data folder has of blobs is not taken for that of others with the same numbers:
// those of another store, or of this one after it was set back to an earlier time.
func TestReadCacheOfAnotherHistory(t *testing.T) {
	dir := t.TempDir()
	before := serveOnce(t, dir, nil, 'a')
	serveOnce(t, dir, before, 'b') // both halves as they were then
	serveOnce(t, dir, nil, 'c')    // another store
	serveOnce(t, dir, before, 'a')
}

// TestFindStore: a command takes a name that no store has for no store, and leaves the servers
// as they are.
func TestFindStore(t *testing.T) {
	m := mem.New(mem.Options{})
	defer m.Close()
	c := &config.Cluster{Store: "photso", Metadata: "etcd://host:2379"}
	if err := findStore(t.Context(), c, m.KV); !errors.Is(err, cluster.ErrNoStore) || !strings.Contains(err.Error(), c.Store) {
		t.Error(err)
	}
	fs, err := vfs.Open(t.Context(), m, vfs.Config{NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	defer fs.Close(context.Background())
	if err := findStore(t.Context(), c, m.KV); err != nil {
		t.Error(err)
	}
}
