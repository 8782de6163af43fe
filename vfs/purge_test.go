package vfs

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"ogw/cluster"
	"ogw/cluster/mem"
)

// TestPurge: with a slash all below a path is touched, in pages.
func TestPurge(t *testing.T) {
	fs := bucketFS(t, openTest(t, mem.New(mem.Options{})))
	const files = purgePage + 10
	for i := range files {
		put(t, fs, fmt.Sprintf("d/%d/f", i), "")
	}
	for path, entries := range map[string]int{"bucket": 1, "bucket/d/7": 1, "bucket/d/7/": 2, "bucket/": 2 + 2*files} {
		if n, err := fs.Purge(bg, path); n != entries || err != nil {
			t.Errorf("purge of %s: %d, %v, want %d", path, n, err, entries)
		}
	}
	_, err := fs.Purge(bg, "bucket/none")
	want(t, err, ErrNotExist)
}

// forgetful notes what it was told to forget.
type forgetful struct {
	cluster.Blobs
	contents []uint64
}

func (f *forgetful) Forget(contents ...uint64) { f.contents = append(f.contents, contents...) }

func (f *forgetful) ReadSummed(ctx context.Context, b cluster.SummedBlob, p []byte, off int64) (int, error) {
	return f.Blobs.ReadAt(ctx, b.ID, p, off)
}

// TestPurgeReferences: the bytes of a copy are in blobs of what it was copied from.
func TestPurgeReferences(t *testing.T) {
	c := mem.New(mem.Options{})
	blobs := &forgetful{Blobs: c.Blobs}
	c.Blobs = blobs
	fs := bucketFS(t, openTest(t, c))
	put(t, fs, "key", blobBody)
	_, err := fs.CopyObject(bg, ObjectName{"bucket", "key"}, ObjectName{"bucket", "copy"}, CopyOptions{})
	want(t, err, nil)
	_, err = fs.Purge(bg, "bucket/copy")
	want(t, err, nil)
	err = fs.blobs.List(bg, cluster.BlobID{}, func(b cluster.BlobInfo) error {
		if !slices.Contains(blobs.contents, b.ID.Content) {
			t.Errorf("blob %v is kept, of %v it is not", b.ID, blobs.contents)
		}
		return nil
	})
	want(t, err, nil)
	if len(blobs.contents) == 0 {
		t.Error("nothing is forgotten")
	}
}
