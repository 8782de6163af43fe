package vfs

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"ogw/cluster"
	"ogw/vfs/internal/naming"
	"ogw/vfs/internal/record"
)

func TestRename(t *testing.T) { onEngines(t, testRenames) }

func testRenames(t *testing.T, fs *FS) {
	// Every case begins with: files f g, a/x, b/y; empty directories e e2;
	// hard links l1 l2; a file that directory s shadows.
	for _, c := range []struct {
		name     string
		from, to string // "dir/name" or "name"
		flags    RenameFlags
		err      error
		after    []string // names at the top afterwards, nil: unchanged
	}{
		{"plain", "f", "h", 0, nil, []string{"h", "g", "a/", "b/", "e/", "e2/", "l1", "l2", "s/", ".ogw~f~s"}},
		{"replace a file", "f", "g", 0, nil, []string{"g", "a/", "b/", "e/", "e2/", "l1", "l2", "s/", ".ogw~f~s"}},
		{"replace an empty directory", "a", "e", 0, nil, []string{"f", "g", "b/", "e/", "e2/", "l1", "l2", "s/", ".ogw~f~s"}},
		{"into a directory", "f", "a/f", 0, nil, []string{"g", "a/", "b/", "e/", "e2/", "l1", "l2", "s/", ".ogw~f~s"}},
		{"directory into a directory", "a", "b/a", 0, nil, []string{"f", "g", "b/", "e/", "e2/", "l1", "l2", "s/", ".ogw~f~s"}},
		{"to itself", "f", "f", 0, nil, nil},
		{"links of one file", "l1", "l2", 0, nil, nil},
		{"missing", "none", "h", 0, ErrNotExist, nil},
		{"file over directory", "f", "e", 0, ErrIsDir, nil},
		{"directory over file", "e", "f", 0, ErrNotDir, nil},
		{"directory over non-empty", "e", "a", 0, ErrNotEmpty, nil},
		{"directory into itself", "a", "a/a", 0, ErrInvalid, nil},
		{"onto its parent", "a/x", "a", 0, ErrIsDir, nil},
		{"dot", ".", "h", 0, ErrInvalid, nil},
		{"dot dot", "f", "..", 0, ErrInvalid, nil},
		{"no replace", "f", "g", RenameNoReplace, ErrExist, nil},
		{"no replace of itself", "f", "f", RenameNoReplace, ErrExist, nil},
		{"no replace, free", "f", "h", RenameNoReplace, nil, []string{"h", "g", "a/", "b/", "e/", "e2/", "l1", "l2", "s/", ".ogw~f~s"}},
		{"exchange with nothing", "f", "h", RenameExchange, ErrNotExist, nil},
		{"exchange files", "f", "g", RenameExchange, nil, nil},
		{"exchange kinds", "f", "a", RenameExchange, nil, []string{"a", "f/", "g", "b/", "e/", "e2/", "l1", "l2", "s/", ".ogw~f~s"}},
		{"exchange with own parent", "a/x", "a", RenameExchange, ErrInvalid, nil},
		{"exchange where a file is shadowed", "f", "s", RenameExchange, ErrExist, nil},
		{"exchange a pair", "s", ".ogw~f~s", RenameExchange, nil, nil},
		{"whiteout of a file", "f", "h", RenameWhiteout, nil, []string{"f", "h", "g", "a/", "b/", "e/", "e2/", "l1", "l2", "s/", ".ogw~f~s"}},
		{"whiteout of a link", "l1", "h", RenameWhiteout, nil, []string{"f", "h", "g", "a/", "b/", "e/", "e2/", "l1", "l2", "s/", ".ogw~f~s"}},
		{"whiteout of a directory", "a", "b/a", RenameWhiteout, nil, []string{"f", "g", "a", "b/", "e/", "e2/", "l1", "l2", "s/", ".ogw~f~s"}},
		{"whiteout of a shadowed file", ".ogw~f~s", "h", RenameWhiteout, nil, []string{"f", "g", "a/", "b/", "e/", "e2/", "l1", "l2", "h", "s/", ".ogw~f~s"}},
		{"whiteout where a file is shadowed", "s", "h", RenameWhiteout, ErrExist, nil},
		{"whiteout, replacing", "f", "g", RenameWhiteout, nil, nil},
		{"whiteout, not replacing", "f", "g", RenameWhiteout | RenameNoReplace, ErrExist, nil},
		{"whiteout and exchange", "f", "g", RenameWhiteout | RenameExchange, ErrInvalid, nil},
		{"both flags", "f", "g", RenameExchange | RenameNoReplace, ErrInvalid, nil},
		{"shadowed file away", ".ogw~f~s", "h", 0, nil, []string{"f", "g", "a/", "b/", "e/", "e2/", "l1", "l2", "s/", "h"}},
		{"shadowing directory away", "s", "h", 0, nil, []string{"f", "g", "a/", "b/", "e/", "e2/", "l1", "l2", "h/", "s"}},
		{"into the shadow", "f", ".ogw~f~a", 0, nil, []string{"g", "a/", ".ogw~f~a", "b/", "e/", "e2/", "l1", "l2", "s/", ".ogw~f~s"}},
		{"replace the shadowed", "f", ".ogw~f~s", 0, nil, []string{"g", "a/", "b/", "e/", "e2/", "l1", "l2", "s/", ".ogw~f~s"}},
		{"directory into the shadow", "e", ".ogw~f~a", 0, ErrInvalid, nil},
		{"directory over the shadowed", "e", ".ogw~f~s", 0, ErrNotDir, nil},
		{"to a name of nothing", "f", ".ogw~z", 0, ErrInvalid, nil},
		{"to a hash of nothing", "f", ".ogw~h~aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 0, ErrInvalid, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			testRename(t, fs, c.name, c.from, c.to, c.flags, c.err, c.after)
		})
	}
}

func testRename(t *testing.T, fs *FS, bucket, from, to string, flags RenameFlags, target error, after []string) {
	top := mustMkdir(t, fs, RootIno, bucket)
	inos := map[string]Ino{}
	for _, n := range []string{"f", "g", "l1"} {
		inos[n] = mustFile(t, fs, top, n)
	}
	for _, n := range []string{"a", "b", "e", "e2", "s"} {
		inos[n] = mustMkdir(t, fs, top, n)
	}
	mustFile(t, fs, inos["a"], "x")
	mustFile(t, fs, inos["b"], "y")
	mustImplied(t, fs, top, "s")
	_, err := fs.Link(bg, Root, inos["l1"], top, "l2")
	want(t, err, nil)
	place := func(s string) (Ino, string) {
		if len(s) > 2 && s[1] == '/' {
			return inos[s[:1]], s[2:]
		}
		return top, s
	}
	fd, fn := place(from)
	td, tn := place(to)
	source, _ := fs.Lookup(bg, Root, fd, fn)
	dest, _ := fs.Lookup(bg, Root, td, tn)
	before := names(t, fs, top)
	want(t, fs.Rename(bg, Root, EntryName{fd, fn}, EntryName{td, tn}, flags), target)
	if after == nil {
		after = before
	}
	wantNames(t, fs, top, after...)
	if target != nil {
		return
	}
	a := mustLookup(t, fs, td, tn)
	if a.Ino != source.Ino || a.Ino != dest.Ino && a.Parent != td {
		if fn != "s" || tn != ".ogw~f~s" {
			t.Errorf("the new name has inode %d (parent %d), want %d (%d)", a.Ino, a.Parent, source.Ino, td)
		}
	}
	if _, err := fs.KeyOf(bg, a.Ino); err != nil {
		t.Errorf("key of what moved: %v", err)
	}
	if flags&RenameExchange == 0 && dest.Ino != 0 && dest.Ino != source.Ino {
		_, err := fs.GetAttr(bg, dest.Ino)
		want(t, err, ErrStale)
	}
}

// What is shown under a hash goes to another directory under that name and keeps its own,
// with a link as with a rename.
func TestRenameHashed(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		top, other := mustMkdir(t, fs, RootIno, "a"), mustMkdir(t, fs, RootIno, "b")
		long, shadowed := strings.Repeat("n", 300), strings.Repeat("s", 250)
		file := naming.Shown(long, false, false)
		dir := naming.Shown(long, true, false)
		shadow := naming.Shown(shadowed, false, true)
		inos := map[string]Ino{file: mustImplied(t, fs, top, long), shadow: mustImplied(t, fs, top, shadowed)}
		mustImplied(t, fs, top, shadowed, "y")
		mustImplied(t, fs, top, long, "x")
		inos[dir] = mustLookup(t, fs, top, dir).Ino
		for _, name := range []string{file, dir, shadow} {
			want(t, fs.Rename(bg, Root, EntryName{top, name}, EntryName{other, name}, 0), nil)
			if a := mustLookup(t, fs, other, name); a.Ino != inos[name] {
				t.Errorf("%s is inode %d, want %d", name, a.Ino, inos[name])
			}
		}
		wantNames(t, fs, top, shadowed+"/")
		wantNames(t, fs, other, file, dir+"/", shadowed) // a file alone needs no hash
		for key, ino := range map[string]Ino{"b/" + long: inos[file], "b/" + long + "/": inos[dir], "b/" + shadowed: inos[shadow]} {
			if got, err := fs.KeyOf(bg, ino); err != nil || got != key {
				t.Errorf("key %.20q, %v, want %.20q", got, err, key)
			}
		}
		_, err := fs.Link(bg, Root, inos[file], top, file)
		want(t, err, nil)
		if a := mustLookup(t, fs, top, file); a.Ino != inos[file] {
			t.Errorf("the link is inode %d", a.Ino)
		}
		// Only its own: what else the hash stands for nobody knows.
		want(t, fs.Rename(bg, Root, EntryName{other, shadowed}, EntryName{top, dir}, 0), ErrInvalid)
		rep, err := fs.Check(bg, CheckOptions{})
		if want(t, err, nil); len(rep.Problems) > 0 {
			t.Errorf("check: %+v", rep.Problems)
		}
	})
}

func TestRenameLeavesImpliedDirectories(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		b := mustMkdir(t, fs, RootIno, "bucket")
		f := mustImplied(t, fs, b, "a", "b", "f")
		a := mustLookup(t, fs, b, "a").Ino
		ab := mustLookup(t, fs, a, "b").Ino
		want(t, fs.Rename(bg, Root, EntryName{ab, "f"}, EntryName{b, "f"}, 0), nil)
		wantNames(t, fs, b, "a/", "f")
		wantNames(t, fs, a, "b/")
		if key, err := fs.KeyOf(bg, f); err != nil || key != "bucket/f" {
			t.Errorf("key %q, %v", key, err)
		}
	})
}

// Of a/ into b/ and b/ into a/ at the same time, one must lose: else both
// hang on each other and nothing leads to them.
func TestRenameRaceMakesNoCycle(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		for i := range 20 {
			top := mustMkdir(t, fs, RootIno, fmt.Sprintf("top%d", i))
			a, b := mustMkdir(t, fs, top, "a"), mustMkdir(t, fs, top, "b")
			var errs [2]error
			var wg sync.WaitGroup
			wg.Go(func() { errs[0] = fs.Rename(bg, Root, EntryName{top, "a"}, EntryName{b, "a"}, 0) })
			wg.Go(func() { errs[1] = fs.Rename(bg, Root, EntryName{top, "b"}, EntryName{a, "b"}, 0) })
			wg.Wait()
			if (errs[0] == nil) == (errs[1] == nil) {
				t.Fatalf("results %v and %v: exactly one must succeed", errs[0], errs[1])
			}
			if len(names(t, fs, top)) != 1 {
				t.Fatalf("the top holds %q", names(t, fs, top))
			}
		}
	})
}

func TestRmdirRacesCreate(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		for i := range 30 {
			d := mustMkdir(t, fs, RootIno, "d")
			var rmErr, mkErr error
			var wg sync.WaitGroup
			wg.Go(func() { rmErr = fs.Rmdir(bg, Root, RootIno, "d") })
			wg.Go(func() {
				_, _, _, mkErr = fs.Create(bg, Root, d, "f", CreateOptions{NoOpen: true})
			})
			wg.Wait()
			switch rmErr {
			case nil:
				want(t, mkErr, ErrStale)
				_, err := fs.GetAttr(bg, d)
				want(t, err, ErrStale)
			default:
				want(t, rmErr, ErrNotEmpty)
				want(t, mkErr, nil)
				want(t, fs.Unlink(bg, Root, d, "f"), nil)
				want(t, fs.Rmdir(bg, Root, RootIno, "d"), nil)
			}
			if i == 0 {
				noLeftovers(t, fs)
			}
		}
		noLeftovers(t, fs)
	})
}

// The last entry of an implied directory goes while another comes.
func TestVanishRacesCreate(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		b := mustMkdir(t, fs, RootIno, "bucket")
		for range 30 {
			mustImplied(t, fs, b, "d", "f")
			d := mustLookup(t, fs, b, "d").Ino
			var rmErr, mkErr error
			var wg sync.WaitGroup
			wg.Go(func() { _, rmErr = fs.DeleteObject(bg, ObjectName{"bucket", "d/f"}, DeleteOptions{}) })
			wg.Go(func() {
				_, _, _, mkErr = fs.Create(bg, Root, d, "g", CreateOptions{NoOpen: true})
			})
			wg.Wait()
			want(t, rmErr, nil)
			if mkErr != nil {
				want(t, mkErr, ErrStale)
			} else {
				wantNames(t, fs, d, "g")
				_, err := fs.DeleteObject(bg, ObjectName{"bucket", "d/g"}, DeleteOptions{})
				want(t, err, nil)
			}
			wantNames(t, fs, b)
		}
		want(t, fs.Rmdir(bg, Root, RootIno, "bucket"), nil)
		noLeftovers(t, fs)
	})
}

// noLeftovers fails if anything but an empty root is stored, and answers for who asks again.
func noLeftovers(t *testing.T, fs *FS) {
	t.Helper()
	want(t, fs.view(bg, func(r cluster.Reader) error {
		return r.Scan([]byte{1}, nil, cluster.ScanOptions{KeysOnly: true}, func(k, _ []byte) error {
			switch {
			case k[0] == record.TabSuper, k[0] == record.TabCounter, k[0] == record.TabAnswer, string(k) == string(record.InodeKey(RootIno)), string(k) == string(record.DirTimeKey(RootIno)):
			default:
				t.Errorf("left over: %c %x", k[0], k[1:])
			}
			return nil
		})
	}), nil)
}
