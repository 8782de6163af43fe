package vfs

import (
	"strings"
	"testing"

	"ogw/vfs/internal/naming"
)

func TestCreateLookupUnlink(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		d := mustMkdir(t, fs, RootIno, "bucket")
		f := mustFile(t, fs, d, "a")
		if a := mustLookup(t, fs, d, "a"); a.Ino != f || !a.IsRegular() || a.Nlink != 1 || a.Parent != d {
			t.Errorf("attributes %+v", a)
		}
		_, _, _, err := fs.Create(bg, Root, d, "a", CreateOptions{Exclusive: true, NoOpen: true})
		want(t, err, ErrExist)
		_, err = fs.Mkdir(bg, Root, d, "a", 0o755)
		want(t, err, ErrExist)
		want(t, fs.Rmdir(bg, Root, d, "a"), ErrNotDir)
		want(t, fs.Rmdir(bg, Root, RootIno, "bucket"), ErrNotEmpty)
		want(t, fs.Unlink(bg, Root, RootIno, "bucket"), ErrIsDir)
		want(t, fs.Unlink(bg, Root, d, "a"), nil)
		want(t, fs.Unlink(bg, Root, d, "a"), ErrNotExist)
		wantNames(t, fs, d)
		want(t, fs.Rmdir(bg, Root, RootIno, "bucket"), nil)
		_, err = fs.GetAttr(bg, d)
		want(t, err, ErrStale)
		_, err = fs.Mkdir(bg, Root, d, "x", 0o755)
		want(t, err, ErrStale)
		wantNames(t, fs, RootIno)
	})
}

func TestImpliedDirectories(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		b := mustMkdir(t, fs, RootIno, "bucket")
		mustImplied(t, fs, b, "a", "b", "f")
		mustImplied(t, fs, b, "a", "b", "g")
		a := mustLookup(t, fs, b, "a").Ino
		ab := mustLookup(t, fs, a, "b").Ino
		wantNames(t, fs, ab, "f", "g")
		// An object operation takes what it emptied along.
		_, err := fs.DeleteObject(bg, ObjectName{"bucket", "a/b/f"}, DeleteOptions{})
		want(t, err, nil)
		_, err = fs.DeleteObject(bg, ObjectName{"bucket", "a/b/g"}, DeleteOptions{})
		want(t, err, nil)
		wantNames(t, fs, b)
		_, err = fs.GetAttr(bg, ab)
		want(t, err, ErrStale)
		want(t, fs.Rmdir(bg, Root, b, "a"), ErrNotExist)
		// A POSIX operation leaves it, and S3 then shows it.
		mustImplied(t, fs, b, "a", "b", "f")
		mustImplied(t, fs, b, "a", "b", "g")
		a = mustLookup(t, fs, b, "a").Ino
		ab = mustLookup(t, fs, a, "b").Ino
		want(t, fs.Unlink(bg, Root, ab, "f"), nil)
		want(t, fs.Rename(bg, Root, EntryName{ab, "g"}, EntryName{b, "g"}, 0), nil)
		wantNames(t, fs, ab)
		wantNames(t, fs, a, "b/")
		_, err = fs.HeadObject(bg, ObjectName{"bucket", "a/b/"}, GetOptions{})
		want(t, err, nil)
		_, err = fs.HeadObject(bg, ObjectName{"bucket", "a/"}, GetOptions{})
		want(t, err, ErrNoSuchKey)
		want(t, fs.Rmdir(bg, Root, a, "b"), nil)
		want(t, fs.Rmdir(bg, Root, b, "a"), nil)
		want(t, fs.Rmdir(bg, Root, b, "a"), ErrNotExist)
	})
}

// A bucket stays when its last object goes, whoever made it and however deep that was:
// who writes into one finds it. A top-level directory that is none goes.
func TestEmptiedBucketStays(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		root := func(key string) ObjectName { return ObjectName{"", key} }
		for _, key := range []string{"spool/job", "photos/" + strings.Repeat("d/", 30) + "x", "No Bucket/x"} {
			_, err := fs.PutObject(bg, root(key), strings.NewReader("x"), PutOptions{Size: 1})
			want(t, err, nil)
			_, err = fs.DeleteObject(bg, root(key), DeleteOptions{})
			want(t, err, nil)
		}
		wantNames(t, fs, RootIno, "photos/", "spool/")
		put := func() {
			_, err := fs.PutObject(bg, ObjectName{"spool", "job"}, strings.NewReader("x"), PutOptions{Size: 1})
			want(t, err, nil)
		}
		put()
		// One that is implied again, because DELETE took its mark.
		_, err := fs.DeleteObject(bg, root("spool/"), DeleteOptions{})
		want(t, err, nil)
		_, err = fs.DeleteObjects(bg, "spool", []string{"job"})
		want(t, err, nil)
		put()
		_, err = fs.DeleteObject(bg, root("spool/job"), DeleteOptions{})
		want(t, err, nil)
		want(t, fs.DeleteBucket(bg, "spool"), nil)
		wantNames(t, fs, RootIno, "photos/")
		// A bucket that is empty goes with the key that names it.
		_, err = fs.DeleteObject(bg, root("photos/"), DeleteOptions{})
		want(t, err, nil)
		wantNames(t, fs, RootIno)
	})
}

func TestDeepImpliedDirectories(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		b := mustMkdir(t, fs, RootIno, "bucket")
		comps := strings.Split(strings.Repeat("x/", 30)+"f", "/")
		mustImplied(t, fs, b, comps...)
		dir := b
		for _, c := range comps[:len(comps)-1] {
			dir = mustLookup(t, fs, dir, c).Ino
		}
		_, err := fs.DeleteObject(bg, ObjectName{"bucket", strings.Join(comps, "/")}, DeleteOptions{})
		want(t, err, nil)
		wantNames(t, fs, b)
	})
}

func TestShadowedAndEscapedNames(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		b := mustMkdir(t, fs, RootIno, "bucket")
		long := strings.Repeat("l", 1000)
		mid := strings.Repeat("m", 250)
		mustImplied(t, fs, b, "a")
		mustImplied(t, fs, b, "a", "b")
		mustImplied(t, fs, b, "a", "", "b")
		mustImplied(t, fs, b, "", "a")
		mustImplied(t, fs, b, "a", "..", "b")
		mustImplied(t, fs, b, "..")
		mustImplied(t, fs, b, long)
		mustImplied(t, fs, b, long, long)
		mustImplied(t, fs, b, mid)
		mustImplied(t, fs, b, mid, "x")
		mustImplied(t, fs, b, "nul\x00%")
		mustImplied(t, fs, b, ".ogw~x")
		hash := func(s string, dir bool) string { return naming.Shown(s, dir, !dir) }
		wantNames(t, fs, b, "a/", ".ogw~f~a", ".ogw~e~/", ".ogw~e~..", hash(long, true)+"/", hash(long, false),
			mid+"/", hash(mid, false), ".ogw~e~nul%00%25", ".ogw~e~.ogw~x")
		for _, n := range names(t, fs, b) {
			mustLookup(t, fs, b, strings.TrimSuffix(n, "/"))
		}
		_, err := fs.Lookup(bg, Root, b, ".ogw~x")
		want(t, err, ErrNotExist)
		_, err = fs.Mkdir(bg, Root, b, ".ogw~x", 0o755)
		want(t, err, ErrInvalid)
		_, err = fs.Mkdir(bg, Root, b, ".ogw~f~new", 0o755)
		want(t, err, ErrInvalid)
		removeAll(t, fs, b)
		wantNames(t, fs, b)
	})
}

// removeAll empties dir as `rm -r` does, which must never fail.
func removeAll(t *testing.T, fs *FS, dir Ino) {
	t.Helper()
	var list []DirEntry
	want(t, fs.ReadDir(bg, Root, dir, ReadDirOptions{}, func(e DirEntry) error {
		list = append(list, e)
		return nil
	}), nil)
	for _, e := range list {
		if e.Mode != ModeDirectory {
			want(t, fs.Unlink(bg, Root, dir, e.Name), nil)
			continue
		}
		removeAll(t, fs, e.Ino)
		want(t, fs.Rmdir(bg, Root, dir, e.Name), nil)
	}
}
