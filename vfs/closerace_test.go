package vfs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
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

// openNow returns which inodes are open.
func openNow(fs *FS) (list []Ino) {
	fs.eachOpen(func(of *openFile) { list = append(list, of.ino) })
	return list
}

// TestCreateAgain: Create opens a file before its transaction commits. Of a run that
// came to nothing nothing stays open, whatever the next one finds.
func TestCreateAgain(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(fs *FS, dir Ino) error // after the first run began to read
		o       CreateOptions
		err     error
		created bool
	}{
		{"the directory changed", func(fs *FS, dir Ino) error {
			mode := uint32(0o700)
			_, err := fs.SetAttr(bg, Root, dir, SetAttr{Mode: &mode})
			return err
		}, CreateOptions{}, nil, true},
		{"somebody was faster", func(fs *FS, dir Ino) error {
			_, _, _, err := fs.Create(bg, Root, dir, "file", CreateOptions{NoOpen: true})
			return err
		}, CreateOptions{}, nil, false},
		{"somebody was faster, exclusively", func(fs *FS, dir Ino) error {
			_, _, _, err := fs.Create(bg, Root, dir, "file", CreateOptions{NoOpen: true})
			return err
		}, CreateOptions{Exclusive: true}, ErrExist, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEngines(t, func(t *testing.T, fs *FS) {
				dir := mustMkdir(t, fs, mustMkdir(t, fs, RootIno, "bucket"), "dir")
				kv := &closingKV{KV: fs.kv}
				setKV(fs, kv)
				change := func() { want(t, c.change(fs, dir), nil) }
				kv.close.Store(&change)
				o := c.o
				o.Mode, o.Flags = 0o644, OpenRead|OpenWrite
				a, f, created, err := fs.Create(bg, Root, dir, "file", o)
				want(t, err, c.err)
				if created != c.created {
					t.Errorf("created: %v", created)
				}
				if err == nil {
					if list := openNow(fs); !slices.Equal(list, []Ino{a.Ino}) || f.Ino() != a.Ino {
						t.Errorf("inode %d was made, of those %d are open", a.Ino, list)
					}
					_, err = f.WriteAt(bg, []byte("text"), 0)
					want(t, err, nil)
					want(t, f.Close(bg), nil)
					if st := mustLookup(t, fs, dir, "file"); st.Ino != a.Ino || st.Size != 4 {
						t.Errorf("the file is inode %d of %d bytes", st.Ino, st.Size)
					}
				}
				if list := openNow(fs); len(list) > 0 {
					t.Errorf("%d stay open", list)
				}
			})
		})
	}
}

// TestCreateRemovedAtOnce: a file whose name is removed before Create returns is open
// all the same, and goes with its last close.
func TestCreateRemovedAtOnce(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		dir := mustMkdir(t, fs, RootIno, "bucket")
		h := hook(fs)
		h.updated = func() {
			h.updated = nil
			want(t, fs.Unlink(bg, Root, dir, "file"), nil)
		}
		a, f, created, err := fs.Create(bg, Root, dir, "file", CreateOptions{Mode: 0o644, Flags: OpenRead | OpenWrite})
		want(t, err, nil)
		if !created {
			t.Error("it was not made")
		}
		_, err = f.WriteAt(bg, []byte("text"), 0)
		want(t, err, nil)
		want(t, f.Sync(bg), nil)
		buf := make([]byte, 4)
		if _, err = f.ReadAt(bg, buf, 0); err != nil || string(buf) != "text" {
			t.Errorf("it holds %q, %v", buf, err)
		}
		if _, err := fs.Lookup(bg, Root, dir, "file"); !errors.Is(err, ErrNotExist) {
			t.Errorf("the name: %v", err)
		}
		want(t, f.Close(bg), nil)
		if _, err := fs.GetAttr(bg, a.Ino); !errors.Is(err, ErrStale) {
			t.Errorf("after the last close: %v", err)
		}
	})
}
