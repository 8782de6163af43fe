package vfs

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs/internal/bodyhash"
	"ogw/vfs/internal/naming"
	"ogw/vfs/internal/record"
)

func bucketFS(t testing.TB, fs *FS) *FS {
	t.Helper()
	if _, err := fs.CreateBucket(t.Context(), "bucket", Root); err != nil {
		t.Fatal(err)
	}
	return fs
}

func put(t testing.TB, fs *FS, key, body string) ObjectInfo {
	t.Helper()
	info, err := fs.PutObject(t.Context(), ObjectName{"bucket", key}, strings.NewReader(body), PutOptions{Size: int64(len(body))})
	if err != nil {
		t.Fatalf("put %q: %v", key, err)
	}
	return info
}

func get(t testing.TB, fs *FS, key string) (string, ObjectInfo) {
	t.Helper()
	b, info, err := tryGet(t.Context(), fs, key)
	if err != nil {
		t.Fatalf("get %q: %v", key, err)
	}
	return b, info
}

func tryGet(ctx context.Context, fs *FS, key string) (string, ObjectInfo, error) {
	o, err := fs.GetObject(ctx, ObjectName{"bucket", key}, GetOptions{})
	if err != nil {
		return "", ObjectInfo{}, err
	}
	defer o.Close()
	b, err := io.ReadAll(io.NewSectionReader(o, 0, o.Info.Size))
	if err == nil && int64(len(b)) != o.Info.Size {
		err = fmt.Errorf("%d bytes, want %d", len(b), o.Info.Size)
	}
	return string(b), o.Info, err
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}

func keysOf(r ListResult) []string {
	keys := make([]string, len(r.Objects))
	for i := range r.Objects {
		keys[i] = r.Objects[i].Key
	}
	return keys
}

func listAll(t testing.TB, fs *FS) []string {
	t.Helper()
	r, err := fs.ListObjects(t.Context(), "bucket", ListOptions{MaxKeys: MaxListKeys})
	if err != nil {
		t.Fatal(err)
	}
	return keysOf(r)
}

func md5Hex(s string) ETag {
	sum := md5.Sum([]byte(s))
	return ETag(hex.EncodeToString(sum[:]))
}

var nastyKeys = []string{
	"a", "a/b", "a//b", "/a", "a/../b", "./x", "//", "/", "x/", "x/y/", "a-b", "a.b", "a\x00b", "\x00", "\xff\xfe/\xff",
	strings.Repeat("n", 1000), strings.Repeat("d/", 511) + "zz", strings.Repeat("/", 1024), ".ogw~e~", ".ogw~f~a", "名前/ファイル",
	strings.Repeat("k", 1024),
}

// A key with more levels than one transaction makes is too long, whatever its body is.
func TestDeepKeys(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		bucketFS(t, fs)
		limited := fs.kv.Limits().Ops > 0
		tooLong := map[bool]error{true: ErrKeyTooLong}[limited]
		deep := ObjectName{"bucket", strings.Repeat("a/", 80) + "f"}
		putDeep := func() error {
			_, err := fs.PutObject(bg, deep, strings.NewReader("x"), PutOptions{Size: 1})
			return err
		}
		err := putDeep()
		if want(t, err, tooLong); errors.Is(err, ErrTooLarge) {
			t.Errorf("%v is ErrTooLarge, too", err)
		}
		if limited { // as many as it takes, a part of them at a time
			for _, levels := range []int{40, 80} {
				put(t, fs, strings.Repeat("a/", levels), "")
			}
			want(t, putDeep(), nil)
		}
		_, err = fs.DeleteObject(bg, deep, DeleteOptions{})
		want(t, err, nil)
	})
}

// Each call that changes a key of more levels than one transaction reads says that it is too
// long. Mounts make such files.
func TestDeeperKeys(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		const levels = 150
		bucketFS(t, fs)
		put(t, fs, "flat", "x")
		dir := mustLookup(t, fs, RootIno, "bucket").Ino
		for range levels {
			dir = mustMkdir(t, fs, dir, "a")
		}
		mustFile(t, fs, dir, "f")
		deep := ObjectName{"bucket", strings.Repeat("a/", levels) + "f"}
		beside := ObjectName{"bucket", strings.Repeat("a/", levels) + "g"}
		flat := ObjectName{"bucket", "flat"}
		body := func() io.Reader { return strings.NewReader("x") }
		for _, call := range []struct {
			name string
			do   func() error
		}{
			{"append", func() error { _, err := fs.AppendObject(bg, deep, 0, body(), PutOptions{Size: 1}); return err }},
			{"append to nothing", func() error { _, err := fs.AppendObject(bg, beside, 0, body(), PutOptions{Size: 1}); return err }},
			{"upload", func() error { _, err := fs.CreateUpload(bg, deep, PutOptions{Size: -1}, "", false); return err }},
			{"tags", func() error { return fs.SetObjectTags(bg, deep, "a=b") }},
			{"grants", func() error { return fs.SetObjectGrants(bg, deep, Grants{}) }},
			{"put", func() error { _, err := fs.PutObject(bg, deep, body(), PutOptions{Size: 1}); return err }},
			{"copy to", func() error { _, err := fs.CopyObject(bg, flat, deep, CopyOptions{}); return err }},
			{"rename to", func() error { return fs.RenameObject(bg, "bucket", flat.Key, beside.Key, RenameOptions{}) }},
			{"rename", func() error { return fs.RenameObject(bg, "bucket", deep.Key, "other", RenameOptions{}) }},
			{"delete", func() error { _, err := fs.DeleteObject(bg, deep, DeleteOptions{}); return err }},
			{"delete many", func() error {
				done, err := fs.DeleteObjects(bg, "bucket", []string{deep.Key})
				if err == nil {
					err = done[0].Err
				}
				return err
			}},
		} {
			err := call.do()
			if limited := fs.kv.Limits().Ops > 0; errors.Is(err, ErrKeyTooLong) != limited || errors.Is(err, ErrTooLarge) || (err != nil) != limited {
				t.Errorf("%s: %v", call.name, err)
			}
		}
	})
}

func TestNastyKeys(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		bucketFS(t, fs)
		keys := slices.Clone(nastyKeys)
		if fs.kv.Limits().Ops > 0 { // deeper than its transactions can make
			keys = slices.DeleteFunc(keys, func(k string) bool { return strings.Count(k, "/") > 100 })
		}
		for _, k := range keys {
			info := put(t, fs, k, "body of "+k)
			if info.ETag != md5Hex("body of "+k) || info.Key != k || info.Dir != strings.HasSuffix(k, "/") {
				t.Errorf("put %q: %+v", k, info)
			}
		}
		for _, k := range keys {
			if b, info := get(t, fs, k); b != "body of "+k || info.ETag != md5Hex(b) {
				t.Errorf("get %q: %q %v", k, b, info.ETag)
			}
		}
		want := slices.Sorted(slices.Values(keys))
		if got := listAll(t, fs); !slices.Equal(got, want) {
			t.Errorf("list: %q\nwant %q", got, want)
		}
		rand.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		for i, k := range keys {
			existed, err := fs.DeleteObject(t.Context(), ObjectName{"bucket", k}, DeleteOptions{})
			if err != nil || !existed {
				t.Errorf("delete %q: %v %v", k, existed, err)
			}
			if _, _, err := tryGet(t.Context(), fs, k); !errors.Is(err, ErrNoSuchKey) {
				t.Errorf("get of deleted %q: %v", k, err)
			}
			if got := listAll(t, fs); len(got) != len(keys)-i-1 {
				t.Errorf("after %q: %q", k, got)
			}
		}
		if err := fs.DeleteBucket(t.Context(), "bucket"); err != nil {
			t.Error("implied directories are left:", err)
		}
		dumpEmpty(t, fs)
	})
}

// dumpEmpty checks that nothing is left in the store but the root, counters, and answers for
// who asks again, once the collector ran.
func dumpEmpty(t *testing.T, fs *FS) {
	t.Helper()
	for n := 1; n > 0; { // what one pass releases is queued for the next
		var err error
		if n, err = fs.Collect(bg); err != nil {
			t.Error(err)
		}
	}
	mustBeClean(t, fs)
	err := fs.kv.View(bg, func(r cluster.Reader) error {
		return r.Scan([]byte{0}, []byte{0xff}, cluster.ScanOptions{}, func(k, v []byte) error {
			switch {
			case k[0] == record.TabSuper, k[0] == record.TabCounter, k[0] == record.TabAnswer:
			case bytes.Equal(k, record.DirTimeKey(RootIno)), bytes.Equal(k, record.InodeKey(RootIno)):
			default:
				t.Errorf("left over: %q %x", k, v)
			}
			return nil
		})
	})
	if err != nil {
		t.Error(err)
	}
	wantBlobs(t, fs, 0)
}

func TestBadKeys(t *testing.T) {
	fs := bucketFS(t, openTest(t, mem.New(mem.Options{})))
	for _, c := range []struct {
		bucket, key string
		want        error
	}{
		{"bucket", "", ErrInvalid},
		{"bucket", strings.Repeat("k", 1025), ErrKeyTooLong},
		{"bucket", strings.Repeat("k/", 512) + "x", ErrKeyTooLong},
		{"absent", "k", ErrNoSuchBucket},
		{"NotLegal", "k", ErrNoSuchBucket},
		{"", strings.Repeat("k", 1025), ErrKeyTooLong},
		{"", "b/" + strings.Repeat("k", 1025), ErrKeyTooLong},
	} {
		_, err := fs.PutObject(t.Context(), ObjectName{c.bucket, c.key}, strings.NewReader(""), PutOptions{})
		wantErr(t, err, c.want)
		_, err = fs.HeadObject(t.Context(), ObjectName{c.bucket, c.key}, GetOptions{})
		if c.bucket != "absent" || !errors.Is(err, ErrNoSuchBucket) {
			wantErr(t, err, c.want)
		}
		_, err = fs.DeleteObject(t.Context(), ObjectName{c.bucket, c.key}, DeleteOptions{})
		wantErr(t, err, c.want)
	}
	// The longest key counts from the bucket on, also for paths from the root.
	if _, err := fs.PutObject(t.Context(), ObjectName{"", "top/" + strings.Repeat("k", 1024)}, strings.NewReader("x"), PutOptions{Size: 1}); err != nil {
		t.Error(err)
	}
}

// Bodies of all sizes around the limits of inline contents, buffers and blobs.
func TestPutSizes(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		bucketFS(t, fs)
		for _, n := range []int{0, 1, 100, DefaultInlineBytes - 1, DefaultInlineBytes, DefaultInlineBytes + 1,
			64 << 10, bodyhash.BufferBytes + DefaultInlineBytes, bodyhash.BufferBytes + DefaultInlineBytes + 1, 5<<20 + 3} {
			body := randomBytes(n)
			sum := md5.Sum(body)
			for _, stated := range []int64{int64(n), -1} {
				// A reader that returns little at a time, and EOF with data.
				info, err := fs.PutObject(t.Context(), ObjectName{"bucket", "k"}, &oddReader{b: body}, PutOptions{Size: stated, MD5: sum[:]})
				if err != nil {
					t.Fatalf("%d bytes: %v", n, err)
				}
				if info.ETag != ETag(hex.EncodeToString(sum[:])) || info.Size != int64(n) {
					t.Errorf("%d bytes: %+v", n, info)
				}
				if b, info := get(t, fs, "k"); b != string(body) || info.Size != int64(n) {
					t.Errorf("%d bytes: read %d", n, len(b))
				}
			}
		}
	})
}

type oddReader struct {
	b []byte
	n int
}

func (r *oddReader) Read(p []byte) (int, error) {
	r.n = r.n*7%8191 + 1
	k := min(len(p), len(r.b), r.n*16)
	copy(p, r.b[:k])
	r.b = r.b[k:]
	if len(r.b) == 0 {
		return k, io.EOF
	}
	return k, nil
}

func randomBytes(n int) []byte {
	var randomSeed [32]byte
	b := make([]byte, n)
	binary.NativeEndian.PutUint64(randomSeed[:], rand.Uint64())
	rand.NewChaCha8(randomSeed).Read(b)
	return b
}

type failReader struct{ err error }

func (r failReader) Read([]byte) (int, error) { return 0, r.err }

// A PUT that fails leaves the old object and nothing else.
func TestPutFails(t *testing.T) {
	own := errors.New("own")
	onEngines(t, func(t *testing.T, fs *FS) {
		bucketFS(t, fs)
		put(t, fs, "k", "old")
		for _, n := range []int{100, 2 << 20} {
			body := randomBytes(n)
			bad := md5.Sum(nil)
			for name, c := range map[string]struct {
				r    io.Reader
				o    PutOptions
				want error
			}{
				"short":        {bytes.NewReader(body), PutOptions{Size: int64(n) + 1}, ErrShortBody},
				"long":         {bytes.NewReader(body), PutOptions{Size: int64(n) - 1}, ErrLongBody},
				"broken":       {io.MultiReader(bytes.NewReader(body), failReader{own}), PutOptions{Size: -1}, own},
				"cut":          {io.MultiReader(bytes.NewReader(body), failReader{io.ErrUnexpectedEOF}), PutOptions{Size: int64(n) + 9}, ErrShortBody},
				"digest":       {bytes.NewReader(body), PutOptions{Size: int64(n), MD5: bad[:]}, ErrBadDigest},
				"too large":    {bytes.NewReader(body), PutOptions{Size: -1, MaxSize: int64(n) - 1}, ErrObjectTooLarge},
				"stated large": {bytes.NewReader(body), PutOptions{Size: MaxObjectBytes + 1}, ErrObjectTooLarge},
				"finish":       {bytes.NewReader(body), PutOptions{Size: int64(n), Finish: func() ([]Checksum, error) { return nil, own }}, own},
				"crc": {bytes.NewReader(body), PutOptions{Size: int64(n), Finish: func() ([]Checksum, error) {
					return []Checksum{{Algorithm: ChecksumCRC64NVME, Value: make([]byte, 8)}}, nil
				}}, ErrBadDigest},
				"if-match":      {bytes.NewReader(body), PutOptions{Size: int64(n), Cond: Preconditions{IfMatch: []ETag{"x"}}}, ErrPrecondition},
				"if-none-match": {bytes.NewReader(body), PutOptions{Size: int64(n), Cond: Preconditions{IfNoneMatch: []ETag{"*"}}}, ErrPrecondition},
				"metadata":      {bytes.NewReader(body), PutOptions{Size: int64(n), Meta: ObjectMeta{User: map[string]string{strings.Repeat("n", 300): "v"}}}, ErrAttrTooLarge},
			} {
				_, err := fs.PutObject(t.Context(), ObjectName{"bucket", "k"}, c.r, c.o)
				if !errors.Is(err, c.want) {
					t.Errorf("%s: error %v, want %v", name, err, c.want)
				}
				if b, _ := get(t, fs, "k"); b != "old" {
					t.Errorf("%s: object has %d bytes", name, len(b))
				}
			}
		}
		if err := fs.blobs.List(t.Context(), cluster.BlobID{}, func(b cluster.BlobInfo) error {
			return fmt.Errorf("blob %v of %d bytes is left", b.ID, b.Size)
		}); err != nil {
			t.Error(err)
		}
	})
}

func TestObjectMeta(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		bucketFS(t, fs)
		meta := ObjectMeta{
			ContentType: "text/x-test", Headers: map[string]string{"Cache-Control": "no-store"},
			User: map[string]string{"one": "1", "two": ""},
		}
		owner := NewCred(7, 8)
		at := time.Unix(1234567, 89)
		info, err := fs.PutObject(t.Context(), ObjectName{"bucket", "d/k"}, strings.NewReader("x"),
			PutOptions{Size: 1, Meta: meta, Owner: owner, Mode: 0o600, MtimeNS: at.UnixNano()})
		if err != nil {
			t.Fatal(err)
		}
		got, err := fs.HeadObject(t.Context(), ObjectName{"bucket", "d/k"}, GetOptions{Checksums: true})
		if err != nil {
			t.Fatal(err)
		}
		if got.Meta.ContentType != meta.ContentType || fmt.Sprint(got.Meta) != fmt.Sprint(meta) || got.UID != 7 ||
			got.Mode != ModeRegular|0o600 || !got.Modified.Equal(at) || got.ETag != info.ETag {
			t.Errorf("head: %+v", got)
		}
		if len(got.Checksums) != 1 || got.Checksums[0].Algorithm != ChecksumCRC64NVME || len(got.Checksums[0].Value) != 8 {
			t.Errorf("checksums: %+v", got.Checksums)
		}
		ino := got.Ino

		// Overwriting keeps inode, owner and mode, and replaces metadata.
		put(t, fs, "d/k", "yy")
		got, err = fs.HeadObject(t.Context(), ObjectName{"bucket", "d/k"}, GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got.Ino != ino || got.UID != 7 || got.Mode != ModeRegular|0o600 || got.Meta.User != nil ||
			got.Meta.Headers != nil || got.Meta.ContentType != "application/octet-stream" {
			t.Errorf("overwritten: %+v", got)
		}
		for _, tags := range []string{"a=b", ""} {
			if err := fs.SetObjectTags(t.Context(), ObjectName{"bucket", "d/k"}, tags); err != nil {
				t.Fatal(err)
			}
			now, err := fs.HeadObject(t.Context(), ObjectName{"bucket", "d/k"}, GetOptions{})
			if err != nil || now.Meta.Tags() != tags || now.ETag != got.ETag {
				t.Errorf("tags %q: %+v %v", tags, now, err)
			}
		}
		wantErr(t, fs.SetObjectTags(t.Context(), ObjectName{"bucket", "d"}, "x=y"), ErrNoSuchKey)
	})
}

func TestDirectoryKeys(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		bucketFS(t, fs)
		put(t, fs, "x/y/file", "1")
		_, _, err := tryGet(t.Context(), fs, "x/y/")
		wantErr(t, err, ErrNoSuchKey)
		existed, err := fs.DeleteObject(t.Context(), ObjectName{"bucket", "x/y/"}, DeleteOptions{})
		if existed || err != nil {
			t.Error("implied directory:", existed, err)
		}
		big := strings.Repeat("0123456789abcdef", 4096)
		put(t, fs, "x/y/", big)
		if b, info := get(t, fs, "x/y/"); b != big || !info.Dir || info.Meta.ContentType != naming.DirContentType {
			t.Errorf("directory's own: %d bytes %+v", len(b), info)
		}
		if got := listAll(t, fs); !slices.Equal(got, []string{"x/y/", "x/y/file"}) {
			t.Error(got)
		}
		// The explicit directory stays without entries, the implied one above with it.
		if _, err := fs.DeleteObject(t.Context(), ObjectName{"bucket", "x/y/file"}, DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := listAll(t, fs); !slices.Equal(got, []string{"x/y/"}) {
			t.Error(got)
		}
		existed, err = fs.DeleteObject(t.Context(), ObjectName{"bucket", "x/y/"}, DeleteOptions{})
		if !existed || err != nil {
			t.Error("explicit directory:", existed, err)
		}
		if err := fs.DeleteBucket(t.Context(), "bucket"); err != nil {
			t.Error(err)
		}
		dumpEmpty(t, fs)
	})
}

// Several links of one file in one request go one after the other.
func TestDeleteObjectsLinks(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		bucketFS(t, fs)
		info := put(t, fs, "d/a", "linked")
		dir, err := fs.Resolve(bg, Root, "bucket/d", true)
		want(t, err, nil)
		for _, name := range []string{"b", "c"} {
			_, err := fs.Link(bg, Root, info.Ino, dir.Ino, name)
			want(t, err, nil)
		}
		for _, keys := range [][]string{{"d/a", "d/c"}, {"d/b", "d/a"}} {
			results, err := fs.DeleteObjects(bg, "bucket", keys)
			want(t, err, nil)
			for _, r := range results {
				want(t, r.Err, nil)
			}
			mustBeClean(t, fs)
		}
		_, err = fs.GetAttr(bg, info.Ino)
		want(t, err, ErrStale)
	})
}

func TestDeleteObjects(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		bucketFS(t, fs)
		var keys []string
		for i := range 120 {
			k := fmt.Sprintf("d%d/e%d/k%03d", i%3, i%7, i)
			body := "small"
			if i%10 == 0 {
				body = strings.Repeat("large", 8000)
			}
			put(t, fs, k, body)
			keys = append(keys, k)
		}
		put(t, fs, "d0/", "")
		put(t, fs, "stay", "here")
		ask := append(slices.Clone(keys), "absent", "no/such/dir/k", keys[0], "d0/", "d1/", strings.Repeat("k", 1025), "")
		results, err := fs.DeleteObjects(t.Context(), "bucket", ask)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range results {
			var want error
			if len(ask[i]) > 1024 {
				want = ErrKeyTooLong
			} else if ask[i] == "" {
				want = ErrInvalid
			}
			if r.Key != ask[i] || !errors.Is(r.Err, want) {
				t.Errorf("%q: %v", r.Key, r.Err)
			}
		}
		if got := listAll(t, fs); !slices.Equal(got, []string{"stay"}) {
			t.Error(got)
		}
		_, err = fs.DeleteObjects(t.Context(), "absent", keys)
		wantErr(t, err, ErrNoSuchBucket)
		// From an implied bucket, which stays without its last key.
		if _, err := fs.PutObject(t.Context(), ObjectName{"", "implied/k"}, strings.NewReader(""), PutOptions{}); err != nil {
			t.Fatal(err)
		}
		results, err = fs.DeleteObjects(t.Context(), "implied", []string{"k", "x/", "l/m"})
		if err != nil || results[0].Err != nil || results[1].Err != nil || results[2].Err != nil {
			t.Error(results, err)
		}
		if err := fs.DeleteBucket(t.Context(), "implied"); err != nil {
			t.Error(err)
		}
		if _, err := fs.DeleteObject(t.Context(), ObjectName{"bucket", "stay"}, DeleteOptions{}); err != nil {
			t.Error(err)
		}
		if err := fs.DeleteBucket(t.Context(), "bucket"); err != nil {
			t.Error(err)
		}
		dumpEmpty(t, fs)
	})
}

func TestBuckets(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		ctx := t.Context()
		for _, name := range []string{"", "ab", "Abc", "-abc", "abc.", "_abc", "1.2.3.4", "999.1.1.1", "a b", strings.Repeat("a", 256), "a/b"} {
			_, err := fs.CreateBucket(ctx, name, Root)
			wantErr(t, err, ErrBadBucketName)
		}
		names := []string{"abc", "abc-d", "abc.d", "abc_d", "abcd", "1.2.3", strings.Repeat("z", 255)}
		for _, name := range names {
			if _, err := fs.CreateBucket(ctx, name, NewCred(5, 6)); err != nil {
				t.Error(name, err)
			}
		}
		_, err := fs.CreateBucket(ctx, "abc", NewCred(5, 0))
		wantErr(t, err, ErrBucketOwned)
		_, err = fs.CreateBucket(ctx, "abc", NewCred(6, 0))
		wantErr(t, err, ErrBucketExists)
		slices.Sort(names)
		var got []string
		for after := ""; ; {
			page, err := fs.ListBuckets(ctx, after, 3)
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range page {
				got = append(got, b.Name)
			}
			if len(page) < 3 {
				break
			}
			after = page[2].Name
		}
		if !slices.Equal(got, names) {
			t.Errorf("%q, want %q", got, names)
		}
		info, err := fs.HeadBucket(ctx, "abc")
		if err != nil || info.UID != 5 || info.GID != 6 || time.Since(info.Created) > time.Minute {
			t.Error(info, err)
		}
		if err := fs.SetBucketAttr(ctx, "abc", "acl", []byte("x")); err != nil {
			t.Error(err)
		}
		if _, v, err := fs.BucketAttr(ctx, "abc", "acl"); string(v) != "x" || err != nil {
			t.Error(v, err)
		}
		if _, v, err := fs.BucketAttr(ctx, "abc", "other"); v != nil || err != nil {
			t.Error(v, err)
		}
		if err := fs.SetBucketAttr(ctx, "abc", "acl", nil); err != nil {
			t.Error(err)
		}
		wantErr(t, fs.SetBucketAttr(ctx, "abc", "acl", make([]byte, 1<<20)), ErrAttrTooLarge)
		wantErr(t, fs.SetBucketAttr(ctx, "nope", "acl", nil), ErrNoSuchBucket)
		// An implied bucket becomes a real one.
		if _, err := fs.PutObject(ctx, ObjectName{"", "implied/k"}, strings.NewReader("12345"), PutOptions{Size: 5}); err != nil {
			t.Fatal(err)
		}
		if n, bytes, err := fs.BucketUsage(ctx, "implied"); n != 1 || bytes != 5 || err != nil {
			t.Error(n, bytes, err)
		}
		if _, err := fs.CreateBucket(ctx, "implied", NewCred(9, 0)); err != nil {
			t.Error(err)
		}
		wantErr(t, fs.DeleteBucket(ctx, "implied"), ErrBucketNotEmpty)
		if _, err := fs.DeleteObject(ctx, ObjectName{"implied", "k"}, DeleteOptions{}); err != nil {
			t.Error(err)
		}
		for _, name := range append(names, "implied") {
			if err := fs.DeleteBucket(ctx, name); err != nil {
				t.Error(name, err)
			}
		}
		dumpEmpty(t, fs)
	})
}

func TestCopyObject(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		bucketFS(t, fs)
		ctx := t.Context()
		for name, body := range map[string]string{"empty": "", "small": "small body", "large": strings.Repeat("0123456789", 100_000)} {
			meta := ObjectMeta{ContentType: "text/a", User: map[string]string{"m": "1"}}
			src, err := fs.PutObject(ctx, ObjectName{"bucket", name}, strings.NewReader(body), PutOptions{Size: -1, Meta: meta})
			if err != nil {
				t.Fatal(err)
			}
			info, err := fs.CopyObject(ctx, ObjectName{"bucket", name}, ObjectName{"bucket", "copy/" + name}, CopyOptions{ChecksumAlgorithm: ChecksumSHA256})
			if err != nil {
				t.Fatal(name, err)
			}
			b, got := get(t, fs, "copy/"+name)
			if b != body || got.ETag != src.ETag || got.Meta.ContentType != "text/a" || got.Meta.User["m"] != "1" || info.ETag != src.ETag {
				t.Errorf("%s: %d bytes %+v", name, len(b), got)
			}
			if len(info.Checksums) != 2 || info.Checksums[0].Algorithm != ChecksumSHA256 {
				t.Errorf("%s: %+v", name, info.Checksums)
			}
			// The source changes; the copy does not. A copy of the copy, then the copy goes.
			put(t, fs, name, "changed")
			if _, err := fs.CopyObject(ctx, ObjectName{"bucket", "copy/" + name}, ObjectName{"bucket", "third"}, CopyOptions{
				ReplaceMeta: true, Meta: ObjectMeta{ContentType: "text/b"}}); err != nil {
				t.Fatal(name, err)
			}
			if _, err := fs.DeleteObject(ctx, ObjectName{"bucket", "copy/" + name}, DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			if b, got := get(t, fs, "third"); b != body || got.Meta.ContentType != "text/b" || got.Meta.User != nil {
				t.Errorf("%s: third: %d bytes %+v", name, len(b), got)
			}
			// Onto itself.
			if _, err := fs.CopyObject(ctx, ObjectName{"bucket", "third"}, ObjectName{"bucket", "third"}, CopyOptions{
				ReplaceMeta: true, Meta: ObjectMeta{ContentType: "text/c"}}); err != nil {
				t.Fatal(name, err)
			}
			if b, got := get(t, fs, "third"); b != body || got.Meta.ContentType != "text/c" || got.ETag != src.ETag {
				t.Errorf("%s: onto itself: %d bytes %+v", name, len(b), got)
			}
		}
		_, err := fs.CopyObject(ctx, ObjectName{"bucket", "absent"}, ObjectName{"bucket", "k"}, CopyOptions{})
		wantErr(t, err, ErrNoSuchKey)
		_, err = fs.CopyObject(ctx, ObjectName{"bucket", "small"}, ObjectName{"bucket", "k"}, CopyOptions{SourceCond: Preconditions{IfNoneMatch: []ETag{"*"}}})
		wantErr(t, err, ErrPrecondition)
		_, err = fs.CopyObject(ctx, ObjectName{"bucket", "small"}, ObjectName{"bucket", "third"}, CopyOptions{Cond: Preconditions{IfNoneMatch: []ETag{"*"}}})
		wantErr(t, err, ErrPrecondition)
		small, err := fs.HeadObject(ctx, ObjectName{"bucket", "small"}, GetOptions{})
		want(t, err, nil)
		for _, c := range []struct {
			etag ETag
			cond Preconditions
			want error
		}{
			{"other", Preconditions{}, ErrConflict},
			{"other", Preconditions{IfMatch: []ETag{"*"}}, ErrConflict},
			{"other", Preconditions{IfUnmodifiedSince: time.Unix(1, 0)}, ErrPrecondition},
			{small.ETag, Preconditions{IfUnmodifiedSince: time.Unix(1, 0)}, ErrPrecondition},
			{small.ETag, Preconditions{IfMatch: []ETag{"x"}}, ErrPrecondition},
			{small.ETag, Preconditions{IfMatch: []ETag{"*"}}, nil},
		} {
			_, err = fs.CopyObject(ctx, ObjectName{"bucket", "small"}, ObjectName{"bucket", "pinned"}, CopyOptions{SourceETag: c.etag, SourceCond: c.cond})
			if !errors.Is(err, c.want) || c.want == nil && err != nil {
				t.Errorf("%q, %+v: %v, want %v", c.etag, c.cond, err, c.want)
			}
		}
		tags, before := "class=secret", small.Meta.Tags()
		want(t, fs.SetObjectTags(ctx, ObjectName{"bucket", "small"}, tags), nil)
		for _, o := range []CopyOptions{{SourceTags: &before}, {SourceTags: &before, ReplaceMeta: true}} {
			_, err = fs.CopyObject(ctx, ObjectName{"bucket", "small"}, ObjectName{"bucket", "tagged"}, o)
			wantErr(t, err, ErrConflict)
		}
		_, err = fs.HeadObject(ctx, ObjectName{"bucket", "tagged"}, GetOptions{})
		wantErr(t, err, ErrNoSuchKey)
		info, err := fs.CopyObject(ctx, ObjectName{"bucket", "small"}, ObjectName{"bucket", "tagged"}, CopyOptions{SourceTags: &tags})
		if want(t, err, nil); info.Meta.Tags() != tags {
			t.Errorf("the copy has the tags %q", info.Meta.Tags())
		}
		_, err = fs.CopyObject(ctx, ObjectName{"bucket", "small"}, ObjectName{"bucket", "k"}, CopyOptions{ChecksumAlgorithm: "MD4"})
		wantErr(t, err, ErrInvalid)
	})
}
