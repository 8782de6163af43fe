package vfs

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ogw/cluster/mem"
)

// modelList is what ListObjects must return, over sorted keys.
func modelList(keys []string, o ListOptions) (objects, prefixes []string, truncated bool, next string) {
	common := func(key string) string {
		rest, ok := strings.CutPrefix(key, o.Prefix)
		if i := strings.Index(rest, o.Delimiter); ok && o.Delimiter != "" && i >= 0 {
			return o.Prefix + rest[:i+len(o.Delimiter)]
		}
		return ""
	}
	if o.MaxKeys == 0 {
		return nil, nil, false, ""
	}
	skip := ""
	if common(o.StartAfter) == o.StartAfter {
		skip = o.StartAfter
	}
	for _, key := range keys {
		if !strings.HasPrefix(key, o.Prefix) || key <= o.StartAfter || skip != "" && strings.HasPrefix(key, skip) {
			continue
		}
		if len(objects)+len(prefixes) == o.MaxKeys {
			return objects, prefixes, true, next
		}
		if c := common(key); c != "" {
			prefixes = append(prefixes, c)
			next, skip = c, c
		} else {
			objects = append(objects, key)
			next = key
		}
	}
	return objects, prefixes, false, ""
}

func checkList(t *testing.T, fs *FS, keys []string, o ListOptions) ListResult {
	t.Helper()
	r, err := fs.ListObjects(bg, "bucket", o)
	if err != nil {
		t.Fatalf("%+v: %v", o, err)
	}
	objects, prefixes, truncated, next := modelList(keys, o)
	if got := keysOf(r); !slices.Equal(got, objects) || !slices.Equal(r.CommonPrefixes, prefixes) || r.Truncated != truncated || r.Next != next {
		t.Errorf("keys %q\n%+v:\ngot  %q %q %v %q\nwant %q %q %v %q", keys, o, got, r.CommonPrefixes, r.Truncated, r.Next,
			objects, prefixes, truncated, next)
	}
	for i := range r.Objects {
		if info := &r.Objects[i]; !o.NamesOnly && (info.Size != int64(len(info.Key)) || info.ETag != md5Hex(info.Key) || info.Modified.IsZero()) {
			t.Errorf("%+v", *info)
		}
	}
	return r
}

func TestListModel(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		seed := rand.Uint64()
		rng := rand.New(rand.NewPCG(seed, 0))
		t.Logf("seed %d", seed)
		bucketFS(t, fs)
		word := func(n int) string {
			const alphabet = "ab/-.\x000\xff/"
			b := make([]byte, rng.IntN(n))
			for i := range b {
				b[i] = alphabet[rng.IntN(len(alphabet))]
			}
			return string(b)
		}
		present := make(map[string]bool)
		var keys []string
		for round := range 8 {
			for range 30 {
				key := word(9)
				if key == "" {
					continue
				}
				if present[key] {
					_, err := fs.DeleteObject(bg, ObjectName{"bucket", key}, DeleteOptions{})
					want(t, err, nil)
					delete(present, key)
				} else {
					put(t, fs, key, key)
					present[key] = true
				}
			}
			keys = keys[:0]
			for k := range present {
				keys = append(keys, k)
			}
			slices.Sort(keys)
			for range 60 {
				o := ListOptions{MaxKeys: rng.IntN(8), NamesOnly: rng.IntN(4) == 0}
				if rng.IntN(2) == 0 {
					o.Prefix = word(4)
				}
				if rng.IntN(3) > 0 {
					o.Delimiter = []string{"/", "/", "/", "-", "a", "//", "/a", "\x00", "b/"}[rng.IntN(9)]
				}
				if rng.IntN(2) == 0 {
					o.StartAfter = o.Prefix + word(6)
				}
				// All pages.
				for range 300 {
					r := checkList(t, fs, keys, o)
					if !r.Truncated {
						break
					}
					o.StartAfter = r.Next
				}
			}
			if t.Failed() {
				t.Fatal("round", round)
			}
		}
	})
}

// Directories and files with many entries, more than a chunk of the lister.
func TestListLarge(t *testing.T) {
	fs := bucketFS(t, openTest(t, mem.New(mem.Options{})))
	var keys []string
	for i := range 1500 {
		keys = append(keys, fmt.Sprintf("flat-%d-%d", i%3, i), fmt.Sprintf("deep/%d/%d", i%4, i))
	}
	for _, k := range keys {
		put(t, fs, k, k)
	}
	slices.Sort(keys)
	for _, o := range []ListOptions{
		{MaxKeys: 1000}, {MaxKeys: 999, Delimiter: "-"}, {MaxKeys: 7, Delimiter: "-"}, {MaxKeys: 1000, Delimiter: "/"},
		{MaxKeys: 100, Prefix: "deep/2"}, {MaxKeys: 1000, Prefix: "flat-1-", Delimiter: "9"}, {MaxKeys: 130, Prefix: "deep/", Delimiter: "1"},
	} {
		for {
			r := checkList(t, fs, keys, o)
			if !r.Truncated {
				break
			}
			o.StartAfter = r.Next
		}
	}
	_, err := fs.ListObjects(bg, "bucket", ListOptions{MaxKeys: -1})
	wantErr(t, err, ErrInvalid)
	_, err = fs.ListObjects(bg, "absent", ListOptions{MaxKeys: 1})
	wantErr(t, err, ErrNoSuchBucket)
	// From the root, keys begin with the bucket.
	r, err := fs.ListObjects(bg, "", ListOptions{Prefix: "bucket/deep/3/", MaxKeys: 2})
	if err != nil || !slices.Equal(keysOf(r), []string{"bucket/deep/3/1003", "bucket/deep/3/1007"}) {
		t.Error(keysOf(r), err)
	}
}

// What POSIX made: links, special files, files beside directories.
func TestListPosix(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		bucketFS(t, fs)
		bucket := mustLookup(t, fs, RootIno, "bucket").Ino
		dir := mustMkdir(t, fs, bucket, "dir")
		mustFile(t, fs, dir, "empty.html")
		put(t, fs, "dir/data", "data")
		for name, target := range map[string]string{
			"link": "dir/data", "twice": "link", "up": "../bucket/dir/data", "dangling": "nowhere", "loop": "loop",
			"todir": "dir", "abs": "/bucket/dir/data", "outside": "../../etc/passwd", "dots": "./dir/../dir//data", "slash": "dir/data/",
			"through": "todir/data",
		} {
			_, err := fs.Symlink(bg, Root, bucket, name, target)
			want(t, err, nil)
		}
		_, err := fs.Symlink(bg, Root, dir, "inner", "../dir/data")
		want(t, err, nil)
		_, err = fs.Mknod(bg, Root, bucket, "fifo", NodeOptions{Mode: ModeFIFO | 0o600})
		want(t, err, nil)
		expect := []string{"dir/", "dir/data", "dir/empty.html", "dir/inner", "dots", "link", "through", "twice"}
		if got := listAll(t, fs); !slices.Equal(got, expect) {
			t.Errorf("list: %q\nwant  %q", got, expect)
		}
		// What is listed can be read, with the same size and ETag, and what is not cannot.
		r, err := fs.ListObjects(bg, "bucket", ListOptions{MaxKeys: 1000})
		want(t, err, nil)
		for _, o := range r.Objects {
			body, info, err := tryGet(bg, fs, o.Key)
			if err != nil || info.ETag != o.ETag || info.Size != o.Size || strings.Contains(o.Key, "t") && false {
				t.Errorf("%q: %v %+v %+v", o.Key, err, info, o)
			}
			if !strings.HasSuffix(o.Key, "/") && o.Key != "dir/empty.html" && body != "data" {
				t.Errorf("%q: %q", o.Key, body)
			}
		}
		for _, k := range []string{"up", "dangling", "loop", "todir", "abs", "outside", "slash", "fifo"} {
			_, _, err := tryGet(bg, fs, k)
			wantErr(t, err, ErrNoSuchKey)
		}
		_, info := get(t, fs, "dir/empty.html")
		if info.Meta.ContentType != "text/html; charset=utf-8" || !strings.Contains(string(info.ETag), "-") {
			t.Errorf("POSIX file: %+v", info)
		}
		// A PUT replaces links and special files, and does not follow them.
		for _, k := range []string{"link", "fifo", "dangling"} {
			put(t, fs, k, "new")
		}
		if b, _ := get(t, fs, "dir/data"); b != "data" {
			t.Errorf("link was followed: %q", b)
		}
		if b, _ := get(t, fs, "twice"); b != "new" {
			t.Errorf("twice: %q", b)
		}
		// So does DELETE.
		for _, k := range []string{"through", "loop", "up"} {
			existed, err := fs.DeleteObject(bg, ObjectName{"bucket", k}, DeleteOptions{})
			if !existed || err != nil {
				t.Errorf("delete %q: %v %v", k, existed, err)
			}
		}
	})
}
