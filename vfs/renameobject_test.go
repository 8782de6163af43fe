package vfs

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestRenameObject(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		bucketFS(t, fs)
		put := func(key, body string) ObjectInfo {
			t.Helper()
			info, err := fs.PutObject(bg, ObjectName{"bucket", key}, strings.NewReader(body), PutOptions{Size: -1, Meta: ObjectMeta{User: map[string]string{"of": key}}})
			want(t, err, nil)
			return info
		}
		move := func(from, to string, o RenameOptions) error { return fs.RenameObject(bg, "bucket", from, to, o) }
		keys := func() string {
			t.Helper()
			page, err := fs.ListObjects(bg, "bucket", ListOptions{MaxKeys: 100})
			want(t, err, nil)
			var list []string
			for _, ob := range page.Objects {
				list = append(list, ob.Key)
			}
			return strings.Join(list, " ")
		}
		for _, c := range []struct{ before, from, to, after string }{
			{"a", "a", "b", "b"},
			{"a", "a", "d/e/f", "d/e/f"},
			{"d/e/f", "d/e/f", "a", "a"},
			{"d/e", "d/e", "d", "d"},
			{"d", "d", "d/e", "d/e"},
			{"d/e", "d/e", "d/f", "d/f"},
			{"d/e", "d/e", "d/e/f", "d/e/f"},
			{"a b", "a", "b", "b"},
			{"a b/c", "a", "b", "b b/c"},
			{"d/e d/f", "d/e", "d/f", "d/f"},
			{"d/a d/b/c", "d/", "e/", "e/a e/b/c"},
			{"d/a d/b/c x", "d/b/", "e/f/g/", "d/a e/f/g/c x"},
			{"d/ d/a", "d/", "e/", "e/ e/a"},
			{"d/a e/", "d/", "e/", "e/a"},
			{"d/a d", "d/", "e/", "d e/a"},
			{"a//b", "a//b", "a/", ""}, // two kinds
		} {
			for _, k := range strings.Fields(keys()) {
				_, err := fs.DeleteObject(bg, ObjectName{"bucket", k}, DeleteOptions{})
				want(t, err, nil)
			}
			for _, k := range strings.Fields(c.before) {
				put(k, "of "+k)
			}
			err := move(c.from, c.to, RenameOptions{})
			if c.after == "" {
				want(t, err, ErrInvalid)
				continue
			}
			want(t, err, nil)
			if got := keys(); got != c.after {
				t.Errorf("%q, %s to %s: %q, want %q", c.before, c.from, c.to, got, c.after)
			}
			if !strings.HasSuffix(c.to, "/") {
				if got, info := get(t, fs, c.to); got != "of "+c.from || info.Meta.User["of"] != c.from {
					t.Errorf("%q, %s to %s: holds %q, %+v", c.before, c.from, c.to, got, info)
				}
			}
		}
		wantClean(t, fs)
	})
}

// TestRenameObjectLongKeys: what gets too long a key is hidden from all that take keys, and
// nothing else is; the way back is open.
func TestRenameObjectLongKeys(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		bucketFS(t, fs)
		short, long := "d/", strings.Repeat("d", 1000)+"/"
		fits, not := strings.Repeat("f", MaxKeyBytes-len(long)), strings.Repeat("n", MaxKeyBytes-len(long)+1)
		put(t, fs, short+fits, "fits")
		put(t, fs, short+not, "does not")
		wantErr(t, fs.RenameObject(bg, "bucket", short, strings.Repeat("d", MaxKeyBytes)+"/", RenameOptions{}), ErrKeyTooLong)
		want(t, fs.RenameObject(bg, "bucket", short, long, RenameOptions{}), nil)
		if got := listAll(t, fs); !slices.Equal(got, []string{long + fits}) {
			t.Error(got)
		}
		_, err := fs.HeadObject(bg, ObjectName{"bucket", long + not}, GetOptions{})
		wantErr(t, err, ErrKeyTooLong)
		wantErr(t, fs.DeleteBucket(bg, "bucket"), ErrBucketNotEmpty)
		want(t, fs.RenameObject(bg, "bucket", long, short, RenameOptions{}), nil)
		if got := listAll(t, fs); !slices.Equal(got, []string{short + fits, short + not}) {
			t.Error(got)
		}
	})
}

func TestRenameObjectRefusals(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		bucketFS(t, fs)
		put := func(key string) ETag {
			t.Helper()
			info, err := fs.PutObject(bg, ObjectName{"bucket", key}, strings.NewReader(key), PutOptions{Size: -1})
			want(t, err, nil)
			return info.ETag
		}
		a, b := put("a"), put("b")
		put("d/x")
		put("e/y")
		_, err := fs.Symlink(bg, Root, mustLookup(t, fs, RootIno, "bucket").Ino, "link", "a")
		want(t, err, nil)
		source := func(c Preconditions) RenameOptions { return RenameOptions{SourceCond: c} }
		target := func(c Preconditions) RenameOptions { return RenameOptions{Cond: c} }
		for _, c := range []struct {
			from, to string
			o        RenameOptions
			err      error
		}{
			{"none", "c", RenameOptions{}, ErrNoSuchKey},
			{"none/", "c/", RenameOptions{}, ErrNoSuchKey},
			{"none/x", "c", RenameOptions{}, ErrNoSuchKey},
			{"link", "c", RenameOptions{}, ErrInvalid},
			{"d/", "d/e/", RenameOptions{}, ErrInvalid},
			{"d/", "e/", RenameOptions{}, ErrNotEmpty},
			{"d/", "e", RenameOptions{}, ErrInvalid},
			{"a", "b", target(Preconditions{IfNoneMatch: []ETag{"*"}}), ErrPrecondition},
			{"a", "b", target(Preconditions{IfMatch: []ETag{a}}), ErrPrecondition},
			{"a", "c", target(Preconditions{IfMatch: []ETag{a}}), ErrNoSuchKey},
			{"a", "c", source(Preconditions{IfMatch: []ETag{b}}), ErrPrecondition},
			{"a", "c", source(Preconditions{IfNoneMatch: []ETag{a}}), ErrNotModified},
			{"d/", "c/", source(Preconditions{IfMatch: []ETag{a}}), ErrInvalid},
			{"a", strings.Repeat("k", MaxKeyBytes+1), RenameOptions{}, ErrKeyTooLong},
		} {
			if err := fs.RenameObject(bg, "bucket", c.from, c.to, c.o); err == nil {
				t.Errorf("%s to %s: renamed", c.from, c.to)
			} else {
				want(t, err, c.err)
			}
		}
		want(t, fs.RenameObject(bg, "", "bucket/a", "bucket/c", RenameOptions{}), ErrInvalid)
		want(t, fs.RenameObject(bg, "bucket", "a", "a", RenameOptions{}), nil)
		want(t, fs.RenameObject(bg, "bucket", "a", "b", RenameOptions{SourceCond: Preconditions{IfMatch: []ETag{a}}, Cond: Preconditions{IfMatch: []ETag{b}}}), nil)
		if got, info := get(t, fs, "b"); got != "a" || info.ETag != a {
			t.Errorf("%q %q", got, info.ETag)
		}
	})
}

// Renames back and forth beside readers of lists: the tree is in one place, whole.
func TestRenameObjectRace(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		bucketFS(t, fs)
		for i := range 10 {
			_, err := fs.PutObject(bg, ObjectName{"bucket", fmt.Sprintf("x/d/%d", i)}, strings.NewReader("v"), PutOptions{Size: -1})
			want(t, err, nil)
		}
		stop := make(chan struct{})
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					page, err := fs.ListObjects(bg, "bucket", ListOptions{MaxKeys: 100})
					if err != nil || len(page.Objects) != 10 {
						t.Errorf("%d keys, %v", len(page.Objects), err)
						return
					}
				}
			})
		}
		for i := range 30 {
			from, to := "x/d/", "y/z/"
			if i%2 == 1 {
				from, to = to, from
			}
			want(t, fs.RenameObject(bg, "bucket", from, to, RenameOptions{}), nil)
		}
		close(stop)
		wg.Wait()
		wantClean(t, fs)
	})
}
