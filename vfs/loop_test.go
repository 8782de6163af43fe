package vfs

import (
	"fmt"
	"testing"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs/internal/record"
)

// TestDirectoryCircle: records that make a directory its own ancestor are
// damage that is reported; they once were a way without end.
func TestDirectoryCircle(t *testing.T) {
	for _, length := range []int{1, 2, 3, 7} {
		t.Run(fmt.Sprint(length), func(t *testing.T) {
			fs := openTest(t, mem.New(mem.Options{}))
			top := mustMkdir(t, fs, RootIno, "top")
			last := top
			for range length - 1 {
				last = mustMkdir(t, fs, last, "d")
			}
			below := mustMkdir(t, fs, mustMkdir(t, fs, last, "d"), "d")
			other := mustMkdir(t, fs, RootIno, "other")
			mustMkdir(t, fs, other, "moved")
			if key, err := fs.KeyOf(bg, below); err != nil || key == "" {
				t.Fatalf("%q %v", key, err)
			}
			want(t, fs.update(bg, func(tx cluster.Txn, _ *op) error {
				n, err := record.GetInode(tx, top)
				if err != nil {
					return err
				}
				n.Parent = last
				return record.PutInode(tx, n)
			}), nil)
			for _, ino := range []Ino{top, last, below} {
				_, err := fs.KeyOf(bg, ino)
				want(t, err, ErrCorrupt)
				want(t, fs.Rename(bg, Root, EntryName{other, "moved"}, EntryName{ino, "here"}, 0), ErrCorrupt)
			}
			rep, err := fs.Check(bg, CheckOptions{})
			want(t, err, nil)
			// Of all in the circle and below it.
			if kinds := kindsOf(rep); kinds["directory-loop"] < length+1 {
				t.Errorf("check: %+v", rep.Problems)
			}
		})
	}
}

// TestDeepDirectory: a way is not taken for a circle because it is long.
func TestDeepDirectory(t *testing.T) {
	fs := openTest(t, mem.New(mem.Options{}))
	const deep = 500
	dir := mustMkdir(t, fs, RootIno, "d")
	for range deep - 1 {
		dir = mustMkdir(t, fs, dir, "d")
	}
	key, err := fs.KeyOf(bg, dir)
	want(t, err, nil)
	if len(key) != 2*deep {
		t.Errorf("a key of %d bytes, not %d", len(key), 2*deep)
	}
}
