package vfs

import (
	"slices"
	"sync"
	"testing"
)

var _ KernelInvalidator = (*recorder)(nil)

// recorder is an Invalidator that remembers its calls.
type recorder struct {
	mu      sync.Mutex
	entries []dentryName
	inodes  []Ino
}

type dentryName struct {
	dir  Ino
	name string
}

func (r *recorder) InvalidateEntry(dir Ino, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries = append(r.entries, dentryName{dir, name})
}

func (r *recorder) InvalidateInode(ino Ino, data bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inodes = append(r.inodes, ino)
}

func (r *recorder) Deferred() Invalidator          { return r }
func (r *recorder) Beside(Invalidator) Invalidator { return r }

func (r *recorder) has(dir Ino, name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.entries, dentryName{dir, name})
}

// Watchers are notified before an operation returns, the origin is not.
func TestWatchers(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		var mine, other recorder
		defer fs.Watch(&mine)()
		defer fs.Watch(&other)()
		ctx := WithOrigin(bg, &mine)
		b := mustMkdir(t, fs, RootIno, "bucket")
		if !mine.has(RootIno, "bucket") || !other.has(RootIno, "bucket") {
			t.Fatal("a change without origin must be told to all")
		}
		mustImplied(t, fs, b, "d", "f")
		d := mustLookup(t, fs, b, "d").Ino
		mine, other = recorder{}, recorder{}
		want(t, fs.Unlink(ctx, Root, d, "f"), nil)
		for _, e := range []dentryName{{d, "f"}, {d, ".ogw~f~f"}} {
			if mine.has(e.dir, e.name) || !other.has(e.dir, e.name) {
				t.Errorf("entry %+v: told to the origin %v, to the other %v", e, mine.has(e.dir, e.name), other.has(e.dir, e.name))
			}
		}
	})
}
