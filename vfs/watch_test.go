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
	data    []Ino // those of inodes with their content
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
	if data {
		r.data = append(r.data, ino)
	}
}

func (r *recorder) Deferred() Invalidator          { return r }
func (r *recorder) Beside(Invalidator) Invalidator { return r }
func (r *recorder) RecallAttrs([]Ino)              {}

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

// Each watcher learns of a renamed inode once: of a directory with what it lists, also its origin,
// and of a file the others.
func TestRenameIsToldOnce(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		var mine, other recorder
		defer fs.Watch(&mine)()
		defer fs.Watch(&other)()
		ctx := WithOrigin(bg, &mine)
		top := mustMkdir(t, fs, RootIno, "bucket")
		a, b := mustMkdir(t, fs, top, "a"), mustMkdir(t, fs, top, "b")
		x, y := mustMkdir(t, fs, a, "x"), mustMkdir(t, fs, b, "y")
		f := mustFile(t, fs, a, "f")
		count := func(what string, ino Ino, dir bool) {
			t.Helper()
			for name, w := range map[string]*recorder{"origin": &mine, "other": &other} {
				want, content := 1, 0
				if w == &mine && !dir {
					want = 0
				}
				if dir {
					content = want
				}
				is := func(i Ino) bool { return i == ino }
				if n, m := number(w.inodes, is), number(w.data, is); n != want || m != content {
					t.Errorf("%s: the %s is told of it %d times, %d with its content; want %d, %d", what, name, n, m, want, content)
				}
			}
		}
		mine, other = recorder{}, recorder{}
		want(t, fs.Rename(ctx, Root, EntryName{a, "x"}, EntryName{b, "x"}, 0), nil)
		count("a directory that moved", x, true)
		mine, other = recorder{}, recorder{}
		want(t, fs.Rename(ctx, Root, EntryName{b, "x"}, EntryName{b, "z"}, 0), nil)
		count("a directory with another name", x, true)
		mine, other = recorder{}, recorder{}
		want(t, fs.Rename(ctx, Root, EntryName{a, "f"}, EntryName{b, "f"}, 0), nil)
		count("a file", f, false)
		mine, other = recorder{}, recorder{}
		want(t, fs.Rename(ctx, Root, EntryName{b, "y"}, EntryName{b, "f"}, RenameExchange), nil)
		count("an exchanged directory", y, true)
		count("an exchanged file", f, false)
	})
}

func number(list []Ino, is func(Ino) bool) (n int) {
	for _, i := range list {
		if is(i) {
			n++
		}
	}
	return n
}
