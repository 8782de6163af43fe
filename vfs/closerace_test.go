package vfs

import (
	"bytes"
	"context"
	"io"
	"sync/atomic"
	"testing"

	"ogw/cluster"
	"ogw/vfs/internal/record"
)

// closingKV closes a file in the middle of a View: between the snapshot and
// whatever the reader does with what it read there.
type closingKV struct {
	cluster.KV
	close atomic.Pointer[func()]
}

// View implements cluster.KV.
func (kv *closingKV) View(ctx context.Context, fn func(cluster.Reader) error) error {
	return kv.KV.View(ctx, kv.closing(fn))
}

// Peek implements cluster.KV.
func (kv *closingKV) Peek(ctx context.Context, fn func(cluster.Reader) error) error {
	return kv.KV.Peek(ctx, kv.closing(fn))
}

func (kv *closingKV) closing(fn func(cluster.Reader) error) func(cluster.Reader) error {
	return func(r cluster.Reader) error {
		if _, err := r.Get(record.SuperKey()); err != nil { // the snapshot is taken
			return err
		}
		if f := kv.close.Swap(nil); f != nil {
			(*f)()
		}
		return fn(r)
	}
}

// Update implements cluster.KV.
func (kv *closingKV) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	return kv.KV.Update(ctx, func(t cluster.Txn) error {
		if _, err := t.Get(record.SuperKey()); err != nil {
			return err
		}
		if f := kv.close.Swap(nil); f != nil {
			(*f)()
		}
		return fn(t)
	})
}

// TestCloseDuringRead closes a file that was written to while somebody looks
// at it, after the snapshot and before the open files are asked: what was
// acknowledged before must be there.
func TestCloseDuringRead(t *testing.T) {
	const name = "file"
	text := bytes.Repeat([]byte("acknowledged "), 10_000)
	for _, c := range []struct {
		name string
		look func(fs *FS, dir, ino Ino) (size int64, err error)
	}{
		{"GetAttr", func(fs *FS, _, ino Ino) (int64, error) {
			a, err := fs.GetAttr(bg, ino)
			return a.Size, err
		}},
		{"Lookup", func(fs *FS, dir, _ Ino) (int64, error) {
			a, err := fs.Lookup(bg, Root, dir, name)
			return a.Size, err
		}},
		{"Resolve", func(fs *FS, _, _ Ino) (int64, error) {
			a, err := fs.Resolve(bg, Root, "bucket/"+name, true)
			return a.Size, err
		}},
		{"ReadDir", func(fs *FS, dir, _ Ino) (size int64, err error) {
			err = fs.ReadDir(bg, Root, dir, ReadDirOptions{Attrs: true}, func(e DirEntry) error {
				size = e.Attr.Size
				return nil
			})
			return size, err
		}},
		{"Create of an existing file", func(fs *FS, dir, _ Ino) (int64, error) {
			a, _, _, err := fs.Create(bg, Root, dir, name, CreateOptions{NoOpen: true})
			return a.Size, err
		}},
		{"HeadObject", func(fs *FS, _, _ Ino) (int64, error) {
			info, err := fs.HeadObject(bg, ObjectName{"bucket", name}, GetOptions{})
			return info.Size, err
		}},
		{"GetObject", func(fs *FS, _, _ Ino) (int64, error) {
			ob, err := fs.GetObject(bg, ObjectName{"bucket", name}, GetOptions{})
			if err != nil {
				return 0, err
			}
			defer ob.Close()
			got, err := io.ReadAll(io.NewSectionReader(ob, 0, ob.Info.Size))
			if err == nil && !bytes.Equal(got, text) {
				t.Errorf("GetObject: other bytes, %d of %d", len(got), len(text))
			}
			return ob.Info.Size, err
		}},
		{"ListObjects", func(fs *FS, _, _ Ino) (size int64, err error) {
			page, err := fs.ListObjects(bg, "bucket", ListOptions{MaxKeys: 10})
			for _, o := range page.Objects {
				size += o.Size
			}
			return size, err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			clu := openLocal(t)
			kv := &closingKV{KV: clu.KV}
			clu.KV = kv
			fs := openTest(t, clu)
			_, err := fs.CreateBucket(bg, "bucket", Root)
			want(t, err, nil)
			dir, err := fs.Lookup(bg, Root, RootIno, "bucket")
			want(t, err, nil)
			ino := mustFile(t, fs, dir.Ino, name)
			f, err := fs.Open(bg, Root, ino, OpenWrite)
			want(t, err, nil)
			_, err = f.WriteAt(bg, text, 0)
			want(t, err, nil)
			fs.attrs.Forget(ino) // or no snapshot is taken
			var closed error
			do := func() { closed = f.Close(bg) }
			kv.close.Store(&do)
			size, err := c.look(fs, dir.Ino, ino)
			want(t, err, nil)
			if kv.close.Load() != nil {
				t.Fatal("nothing was read from the store")
			}
			want(t, closed, nil)
			if size != int64(len(text)) {
				t.Errorf("size %d, want %d", size, len(text))
			}
		})
	}
}
