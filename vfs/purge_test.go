package vfs

import (
	"fmt"
	"testing"

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
