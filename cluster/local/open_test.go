package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ogw/cluster"
	"ogw/cluster/local/internal/fileio"
	"ogw/cluster/local/internal/record"
)

func TestLocked(t *testing.T) {
	dir := t.TempDir()
	c := openAt(t, Options{Dir: dir})
	_, err := Open(ctx, Options{Dir: dir})
	if !errors.Is(err, cluster.ErrLocked) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Errorf("second Open: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	openAt(t, Options{Dir: dir})
}

func TestFormat(t *testing.T) {
	id := strings.Repeat("ab", record.StoreIDBytes)
	for _, test := range []struct{ name, text, message string }{
		{"newer", "ogw embedded store\nversion 2\nid " + id + "\n", "newer ogw (format 2"},
		{"foreign", "something else entirely\n", "not an ogw store"},
		{"empty", "", "not an ogw store"},
		{"version", "ogw embedded store\nversion x\nid " + id + "\n", "version line"},
		{"id", "ogw embedded store\nversion 1\nid 1234\n", "store ID"},
		{"id digits", "ogw embedded store\nversion 1\nid " + strings.Repeat("zz", record.StoreIDBytes) + "\n", "store ID"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, record.FormatFile), []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Open(ctx, Options{Dir: dir})
			if !errors.Is(err, cluster.ErrFormat) || !strings.Contains(err.Error(), test.message) || !strings.Contains(err.Error(), dir) {
				t.Errorf("Open: %v", err)
			}
		})
	}
}

// TestWrongFolder: a folder that is not a store, or mixed from two, is refused
// and left as it was.
func TestWrongFolder(t *testing.T) {
	t.Run("other", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "photos"), 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(ctx, Options{Dir: dir}); !errors.Is(err, cluster.ErrFormat) || !strings.Contains(err.Error(), "photos") {
			t.Errorf("Open: %v", err)
		}
	})
	t.Run("no FORMAT", func(t *testing.T) {
		dir := t.TempDir()
		openAt(t, Options{Dir: dir}).Close()
		os.Remove(filepath.Join(dir, record.FormatFile))
		if _, err := Open(ctx, Options{Dir: dir}); !errors.Is(err, cluster.ErrFormat) || !strings.Contains(err.Error(), record.MetaDir) {
			t.Errorf("Open: %v", err)
		}
	})
	t.Run("no store", func(t *testing.T) {
		dir := t.TempDir()
		for _, dir := range []string{dir, filepath.Join(dir, "missing")} {
			if _, err := Open(ctx, Options{Dir: dir, MustExist: true}); !errors.Is(err, cluster.ErrNoStore) || !strings.Contains(err.Error(), dir) {
				t.Errorf("Open: %v", err)
			}
		}
		if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
			t.Errorf("%v %v", err, list)
		}
		openAt(t, Options{Dir: dir}).Close()
		openAt(t, Options{Dir: dir, MustExist: true}).Close()
		os.Remove(filepath.Join(dir, record.FormatFile))
		if _, err := Open(ctx, Options{Dir: dir, MustExist: true}); !errors.Is(err, cluster.ErrFormat) {
			t.Errorf("Open: %v", err)
		}
	})
	t.Run("mixed", func(t *testing.T) {
		a, b := t.TempDir(), t.TempDir()
		openAt(t, Options{Dir: a}).Close()
		openAt(t, Options{Dir: b}).Close()
		format, err := os.ReadFile(filepath.Join(b, record.FormatFile))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(a, record.FormatFile), format, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(ctx, Options{Dir: a}); !errors.Is(err, cluster.ErrFormat) || !strings.Contains(err.Error(), "belong to store") {
			t.Errorf("Open: %v", err)
		}
	})
	t.Run("a file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(ctx, Options{Dir: path}); err == nil {
			t.Error("a file was opened as a folder")
		}
	})
	t.Run("damaged metadata", func(t *testing.T) {
		dir := t.TempDir()
		c := openAt(t, Options{Dir: dir})
		if err := c.KV.Update(ctx, func(txn cluster.Txn) error { return txn.Set([]byte("k"), []byte("v")) }); err != nil {
			t.Fatal(err)
		}
		c.Close()
		manifests, _ := filepath.Glob(filepath.Join(dir, record.MetaDir, "MANIFEST-*"))
		for _, path := range manifests {
			if err := os.WriteFile(path, []byte("garbage"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Open(ctx, Options{Dir: dir}); err == nil {
			t.Error("opened over a damaged manifest")
		}
		// Nothing is left locked.
		if _, err := Open(ctx, Options{Dir: dir}); errors.Is(err, cluster.ErrLocked) {
			t.Errorf("second Open: %v", err)
		}
	})
}

// TestBuffered runs on a file system without O_DIRECT.
func TestBuffered(t *testing.T) {
	c := openAt(t, Options{Dir: t.TempDir(), disk: &fileio.OS{}})
	for seed := range 8 {
		id := cluster.BlobID{Content: 1, Seq: uint64(seed)}
		if err := storeBlob(c.Blobs, id, seedBytes(seed)); err != nil {
			t.Fatal(err)
		}
		if err := readBack(c.Blobs, id, seedBytes(seed)); err != nil {
			t.Error(err)
		}
	}
}

func FuzzFormat(f *testing.F) {
	f.Add(record.EncodeFormat(record.StoreID{1, 2, 3}))
	f.Add([]byte("ogw embedded store\nversion 1\nid \n"))
	f.Add(record.EncodeFormat(record.StoreID{4})[:len(record.EncodeFormat(record.StoreID{}))-1])
	f.Fuzz(func(t *testing.T, data []byte) {
		id, err := record.ParseFormat(data)
		if err != nil && !errors.Is(err, cluster.ErrFormat) {
			t.Errorf("error %v", err)
		}
		if err == nil && len(data) < len(record.EncodeFormat(id)) {
			t.Errorf("accepted %q", data)
		}
	})
}
