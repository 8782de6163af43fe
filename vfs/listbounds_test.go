package vfs

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ogw/cluster/mem"
	"ogw/vfs/internal/listing"
)

// listPages lists a bucket page by page.
func listPages(t *testing.T, fs *FS, o ListOptions) (keys []string, pages int) {
	t.Helper()
	o.MaxKeys = MaxListKeys
	for {
		page, err := fs.ListObjects(bg, "bucket", o)
		want(t, err, nil)
		bytes := 0
		for _, ob := range page.Objects {
			keys = append(keys, ob.Key)
			bytes += len(ob.Key)
		}
		for _, p := range page.CommonPrefixes {
			keys = append(keys, p)
			bytes += len(p)
		}
		if bytes > listing.MaxBytes+MaxKeyBytes || len(page.Next) > 2*MaxKeyBytes {
			t.Fatalf("a page of %d bytes, which goes on after %d", bytes, len(page.Next))
		}
		if pages++; !page.Truncated {
			return keys, pages
		}
		o.StartAfter = page.Next
	}
}

// Keys that no call takes are not listed, however deep their directories lie,
// and what stands after them is.
func TestListDeepDirectories(t *testing.T) {
	fs := openTest(t, mem.New(mem.Options{}))
	_, err := fs.CreateBucket(bg, "bucket", Root)
	want(t, err, nil)
	bucket := mustLookup(t, fs, RootIno, "bucket").Ino
	name := strings.Repeat("d", MaxPosixNameBytes)
	dir, path := bucket, ""
	var expect []string
	for range 300 {
		mustFile(t, fs, dir, "f")
		if len(path)+1 <= MaxKeyBytes {
			expect = append(expect, path+"f")
		}
		dir, path = mustMkdir(t, fs, dir, name), path+name+"/"
		if len(path) <= MaxKeyBytes {
			expect = append(expect, path)
		}
	}
	mustFile(t, fs, bucket, "last")
	expect = append(expect, "last")
	keys, _ := listPages(t, fs, ListOptions{})
	found := map[string]bool{}
	for _, k := range keys {
		found[k] = true
		if len(k) > MaxKeyBytes {
			t.Errorf("a key of %d bytes", len(k))
		}
	}
	for _, k := range expect {
		if !found[k] {
			t.Errorf("not listed: %.20s... of %d bytes", k, len(k))
		}
	}
	if len(keys) != len(expect) {
		t.Errorf("%d keys, want %d", len(keys), len(expect))
	}
	page, err := fs.ListObjects(bg, "bucket", ListOptions{Prefix: path, MaxKeys: 10})
	if err != nil || len(page.Objects) > 0 {
		t.Errorf("%v, %d keys below what no call takes", err, len(page.Objects))
	}
}

// A page holds a bounded number of bytes, of keys and of common prefixes.
func TestListPageBytes(t *testing.T) {
	fs := openTest(t, mem.New(mem.Options{}))
	_, err := fs.CreateBucket(bg, "bucket", Root)
	want(t, err, nil)
	const n = MaxListKeys
	for i := range n {
		key := fmt.Sprintf("%04d", i) + strings.Repeat("x", MaxKeyBytes-6) + "/y"
		_, err := fs.PutObject(bg, ObjectName{"bucket", key}, strings.NewReader(""), PutOptions{})
		want(t, err, nil)
	}
	for _, delim := range []string{"", "/"} {
		if keys, pages := listPages(t, fs, ListOptions{Delimiter: delim}); len(keys) != n || pages < 2 {
			t.Errorf("delimiter %q: %d keys on %d pages", delim, len(keys), pages)
		}
	}
	for i := range n {
		_, err := fs.CreateUpload(bg, ObjectName{"bucket", fmt.Sprintf("%04d", i) + strings.Repeat("x", MaxKeyBytes-4)}, PutOptions{Size: -1}, "", false)
		want(t, err, nil)
	}
	var page UploadPage
	total, pages := 0, 0
	for {
		page, err = fs.ListUploads(bg, "bucket", ListUploadsOptions{AfterKey: page.NextKey, AfterUpload: page.NextUpload, MaxUploads: n})
		want(t, err, nil)
		total += len(page.Uploads)
		if pages++; !page.Truncated {
			break
		}
		if len(page.Uploads)*MaxKeyBytes > listing.MaxBytes+MaxKeyBytes {
			t.Fatalf("a page of %d uploads", len(page.Uploads))
		}
	}
	if total != n || pages < 2 {
		t.Errorf("%d uploads on %d pages", total, pages)
	}
}

// A page that ends at what is no object goes on with all that stands behind it, also where the
// name of that is a common prefix.
func TestListPassesOver(t *testing.T) {
	fs := openTest(t, mem.New(mem.Options{}))
	bucketFS(t, fs)
	bucket := mustLookup(t, fs, RootIno, "bucket").Ino
	const links = 10_050 // more than a page passes over
	files := make(map[string][]string)
	for i := range links {
		name := fmt.Sprintf("k%05d-", i)
		_, err := fs.Symlink(bg, Root, bucket, name, "nowhere")
		want(t, err, nil)
		if i%1000 == 0 || i > 9950 && i%3 == 0 {
			mustFile(t, fs, bucket, name+"x")
			files[""], files["-"], files["-x"] = append(files[""], name+"x"), append(files["-"], name), append(files["-x"], name+"x")
		}
	}
	mustFile(t, fs, bucket, "last")
	files["/"] = files[""]
	for delim, expect := range files {
		keys, pages := listPages(t, fs, ListOptions{Delimiter: delim})
		slices.Sort(keys) // of each page objects come first
		if expect = append(expect, "last"); !slices.Equal(keys, expect) || pages < 2 {
			t.Errorf("delimiter %q: %d of %d keys on %d pages", delim, len(keys), len(expect), pages)
		}
	}
}

// A page of text neither ends at a name that is none, which its reader could not go on
// with, nor passes over any number of them.
func TestListPassesOverNoText(t *testing.T) {
	fs := openTest(t, mem.New(mem.Options{}))
	bucketFS(t, fs)
	bucket := mustLookup(t, fs, RootIno, "bucket").Ino
	mustFile(t, fs, bucket, "a")
	mustFile(t, fs, bucket, "\uac00") // behind what begins with E9
	for i := range 10_050 {
		_, err := fs.Symlink(bg, Root, bucket, fmt.Sprintf("\xe9%05d", i), "nowhere")
		want(t, err, nil)
		if i == 100 {
			keys, pages := listPages(t, fs, ListOptions{Text: true})
			if !slices.Equal(keys, []string{"a", "\uac00"}) || pages != 1 {
				t.Errorf("%q on %d pages", keys, pages)
			}
		}
	}
	page, err := fs.ListObjects(bg, "bucket", ListOptions{Text: true, MaxKeys: 10})
	if err != nil || len(page.Objects) != 1 || !page.Truncated || page.Next != "a" {
		t.Errorf("%+v, %v", page, err)
	}
	_, err = fs.ListObjects(bg, "bucket", ListOptions{Text: true, MaxKeys: 10, StartAfter: page.Next})
	want(t, err, ErrInvalid)
	if keys, _ := listPages(t, fs, ListOptions{}); !slices.Equal(keys, []string{"a", "\uac00"}) {
		t.Errorf("%q", keys)
	}
}
