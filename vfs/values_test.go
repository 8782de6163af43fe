package vfs

import (
	"bytes"
	"errors"
	"testing"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs/internal/record"
)

// TestValuesAreTheCallers: what is returned can be changed, and the store
// keeps what it has.
func TestValuesAreTheCallers(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		bucketFS(t, fs)
		file := mustFile(t, fs, RootIno, "f")
		value := bytes.Repeat([]byte("value"), 10)
		want(t, fs.SetXattr(bg, Root, file, Xattr{Name: "user.name", Value: value}, 0), nil)
		want(t, fs.UpdateSetting(bg, "setting", func([]byte) ([]byte, error) { return bytes.Clone(value), nil }), nil)
		want(t, fs.SetBucketAttr(bg, "bucket", "attr", value), nil)
		stop := errors.New("stop")
		for what, get := range map[string]func() ([]byte, error){
			"attribute": func() ([]byte, error) { return fs.GetXattr(bg, Root, file, "user.name") },
			"setting":   func() ([]byte, error) { return fs.Setting(bg, "setting") },
			"old setting": func() (v []byte, err error) {
				err = fs.UpdateSetting(bg, "setting", func(old []byte) ([]byte, error) { v = old; return nil, stop })
				if errors.Is(err, stop) {
					err = nil
				}
				return v, err
			},
			"attribute of a bucket": func() ([]byte, error) { _, v, err := fs.BucketAttr(bg, "bucket", "attr"); return v, err },
		} {
			for range 3 {
				v, err := get()
				want(t, err, nil)
				if !bytes.Equal(v, value) {
					t.Fatalf("%s is %q", what, v)
				}
				clear(v)
			}
		}
	})
}

// TestPeekTwice: what an earlier run of Peek found is forgotten.
func TestPeekTwice(t *testing.T) {
	fs := openTest(t, mem.New(mem.Options{}))
	file := mustFile(t, fs, RootIno, "f")
	want(t, fs.SetXattr(bg, Root, file, Xattr{Name: "user.name", Value: []byte("value")}, 0), nil)
	h := hook(fs)
	h.peek = func(fn func(cluster.Reader) error) error {
		_ = h.KV.View(bg, fn)
		h.peek = nil
		want(t, fs.update(bg, func(tx cluster.Txn, _ *op) error { // as if none had been set
			n, err := record.GetInode(tx, file)
			if err != nil {
				return err
			}
			n.Set(record.FlagXattrs, false)
			return record.PutInode(tx, n)
		}), nil)
		return h.KV.View(bg, fn)
	}
	if names, err := fs.ListXattr(bg, Root, file); err != nil || len(names) > 0 {
		t.Errorf("%q, %v", names, err)
	}
}
