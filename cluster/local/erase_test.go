package local

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"ogw/cluster"
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
