package vfs

import (
	"context"
	"strings"
	"testing"

	"ogw/cluster"
	"ogw/vfs/internal/record"
)

// extentReads counts the extents that transactions look up.
type extentReads struct {
	cluster.KV
	n int
}

type extentReadsTxn struct {
	cluster.Txn
	n *int
}

// Scan implements cluster.Reader.
func (t *extentReadsTxn) Scan(start, end []byte, o cluster.ScanOptions, fn func(key, value []byte) error) error {
	return t.Txn.Scan(start, end, o, func(key, value []byte) error {
		if key[0] == record.TabExtent {
			*t.n++
		}
		return fn(key, value)
	})
}

func (e *extentReads) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	return e.KV.Update(ctx, func(t cluster.Txn) error { return fn(&extentReadsTxn{t, &e.n}) })
}

func (t *extentReadsTxn) Get(key []byte) ([]byte, error) {
	if key[0] == record.TabExtent {
		*t.n++
	}
	return t.Txn.Get(key)
}

// TestOverwriteReadsNoContent: a small object is replaced, and deleted, without
// its old bytes being read.
func TestOverwriteReadsNoContent(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		bucketFS(t, fs)
		put(t, fs, "k", "the first")
		reads := &extentReads{KV: fs.kv}
		setKV(fs, reads)
		put(t, fs, "k", "the second")
		_, err := fs.DeleteObject(bg, ObjectName{"bucket", "k"}, DeleteOptions{})
		want(t, err, nil)
		if reads.n > 0 {
			t.Errorf("%d extents were read", reads.n)
		}
		want(t, fs.view(bg, func(r cluster.Reader) error {
			if any, err := record.AnyKey(r, []byte{record.TabExtent}); err != nil || any {
				t.Errorf("an extent is left, or %v", err)
			}
			return nil
		}), nil)
	})
}

// TestOneInlineFollowsChanges: whatever changes the content of a small object in
// place ends what its inode says of the content's form, so that the next
// overwrite leaves nothing behind.
func TestOneInlineFollowsChanges(t *testing.T) {
	const inline = 4 << 10
	write := func(at int64, n int) func(f *File) error {
		return func(f *File) error {
			_, err := f.WriteAt(bg, []byte(strings.Repeat("w", n)), at)
			return err
		}
	}
	size := func(n int64) func(f *File) error {
		return func(f *File) error {
			_, err := f.fs.SetAttr(bg, Root, f.Ino(), SetAttr{Size: &n})
			return err
		}
	}
	changes := map[string]func(f *File) error{
		"within":     write(10, 100),
		"appended":   write(1000, 100),
		"far behind": write(10*inline, 100),
		"large":      write(0, 20*inline),
		"cut":        size(500),
		"emptied":    size(0),
		"longer":     size(50 * inline),
		"hole":       func(f *File) error { return f.Allocate(bg, AllocPunchHole|AllocKeepSize, 100, 200) },
		"copied": func(f *File) error {
			_, err := f.CopyRange(bg, 5*inline, f, 0, 1000)
			return err
		},
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			fs := bucketFS(t, openTestWith(t, openLocal(t), Config{InlineBytes: inline}))
			for _, end := range []func(){
				func() { put(t, fs, "k", "small again") },
				func() {
					_, err := fs.DeleteObject(bg, ObjectName{"bucket", "k"}, DeleteOptions{})
					want(t, err, nil)
				},
				func() {
					_, err := fs.DeleteObjects(bg, "bucket", []string{"k"})
					want(t, err, nil)
				},
			} {
				put(t, fs, "k", strings.Repeat("o", 1000))
				a, err := fs.Resolve(bg, Root, "bucket/k", true)
				want(t, err, nil)
				f := mustOpen(t, fs, a.Ino, OpenRead|OpenWrite)
				want(t, change(f), nil)
				want(t, f.Sync(bg), nil)
				want(t, f.Close(bg), nil)
				mustBeClean(t, fs)
				end()
				mustBeClean(t, fs)
			}
		})
	}
}

// TestCheckFindsFalseForm: what a program that does not know the flag leaves.
func TestCheckFindsFalseForm(t *testing.T) {
	fs := bucketFS(t, openTest(t, openLocal(t)))
	put(t, fs, "k", strings.Repeat("large", 100_000))
	a, err := fs.Resolve(bg, Root, "bucket/k", true)
	want(t, err, nil)
	want(t, fs.update(bg, func(t cluster.Txn, _ *op) error {
		n, err := record.GetInode(t, a.Ino)
		if err != nil {
			return err
		}
		n.Set(record.FlagOneInline, true)
		return record.PutInode(t, n)
	}), nil)
	rep, err := fs.Check(bg, CheckOptions{Repair: true})
	want(t, err, nil)
	if len(rep.Problems) != 1 || rep.Problems[0].Kind != "content-form" || rep.Repaired != 1 {
		t.Errorf("repaired %d of %+v", rep.Repaired, rep.Problems)
	}
	put(t, fs, "k", "small")
	mustBeClean(t, fs)
}
