package vfs

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Of many that create a key, or replace one version of it, one wins.
func TestConditionalRace(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		bucketFS(t, fs)
		etag := ETag("")
		for round := range 10 {
			cond := Preconditions{IfNoneMatch: []ETag{"*"}}
			if round > 0 {
				cond = Preconditions{IfMatch: []ETag{etag}}
			}
			var wins atomic.Int32
			var winner atomic.Value
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					body := fmt.Sprint(round, " by ", i)
					info, err := fs.PutObject(bg, ObjectName{"bucket", "k"}, strings.NewReader(body), PutOptions{Size: -1, Cond: cond})
					switch {
					case err == nil:
						wins.Add(1)
						winner.Store(info.ETag)
					case !errors.Is(err, ErrPrecondition):
						t.Error(err)
					}
				})
			}
			wg.Wait()
			_, info := get(t, fs, "k")
			if etag = info.ETag; wins.Load() != 1 || winner.Load() != etag {
				t.Fatalf("round %d: %d winners", round, wins.Load())
			}
		}
	})
}

// A reader sees an old object or a new one, never a mixture, and never one
// that was deleted half.
func TestPutGetDeleteRace(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		bucketFS(t, fs)
		const length = 64 << 10
		ctx := t.Context()
		stop := make(chan struct{})
		var writers, readers sync.WaitGroup
		for w := range 3 {
			writers.Go(func() {
				for i := range 20 {
					n := 100
					if i%2 == 0 {
						n = length
					}
					body := strings.Repeat(string(rune('a'+w)), n+w)
					_, err := fs.PutObject(ctx, ObjectName{"bucket", "d/k"}, strings.NewReader(body), PutOptions{Size: -1})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		writers.Go(func() {
			for range 20 {
				if _, err := fs.DeleteObject(ctx, ObjectName{"bucket", "d/k"}, DeleteOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
		for range 2 {
			readers.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					body, info, err := tryGet(ctx, fs, "d/k")
					if errors.Is(err, ErrNoSuchKey) {
						continue
					}
					if err != nil || md5Hex(body) != info.ETag || strings.Trim(body, body[:1]) != "" {
						t.Errorf("%d bytes, %+v, %v", len(body), info, err)
						return
					}
				}
			})
		}
		writers.Wait()
		close(stop)
		readers.Wait()
		if _, err := fs.DeleteObject(ctx, ObjectName{"bucket", "d/k"}, DeleteOptions{}); err != nil {
			t.Error(err)
		}
		want(t, fs.DeleteBucket(ctx, "bucket"), nil)
		dumpEmpty(t, fs)
	})
}

// An overwritten file keeps its inode unless it has several names.
func TestPutOverLinks(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		bucketFS(t, fs)
		bucket := mustLookup(t, fs, RootIno, "bucket").Ino
		put(t, fs, "a", "one")
		a := mustLookup(t, fs, bucket, "a")
		put(t, fs, "a", "two")
		if now := mustLookup(t, fs, bucket, "a"); now.Ino != a.Ino || now.Gen != a.Gen || now.Version <= a.Version {
			t.Errorf("overwritten: %+v, was %+v", now, a)
		}
		_, err := fs.Link(bg, Root, a.Ino, bucket, "b")
		want(t, err, nil)
		put(t, fs, "a", "three")
		now, b := mustLookup(t, fs, bucket, "a"), mustLookup(t, fs, bucket, "b")
		if now.Ino == a.Ino || b.Ino != a.Ino || b.Nlink != 1 || now.Nlink != 1 {
			t.Errorf("a: %+v b: %+v", now, b)
		}
		for key, body := range map[string]string{"a": "three", "b": "two"} {
			if got, _ := get(t, fs, key); got != body {
				t.Errorf("%q: %q", key, got)
			}
		}
		// A copy between two names of one file.
		_, err = fs.Link(bg, Root, b.Ino, bucket, "c")
		want(t, err, nil)
		_, err = fs.CopyObject(bg, ObjectName{"bucket", "b"}, ObjectName{"bucket", "c"}, CopyOptions{})
		want(t, err, nil)
		if c := mustLookup(t, fs, bucket, "c"); c.Ino == b.Ino {
			t.Error("c is still b")
		}
		for _, key := range []string{"b", "c"} {
			if got, _ := get(t, fs, key); got != "two" {
				t.Errorf("%q: %q", key, got)
			}
		}
		if _, err := fs.DeleteObjects(bg, "bucket", []string{"a", "b", "c"}); err != nil {
			t.Error(err)
		}
		want(t, fs.DeleteBucket(bg, "bucket"), nil)
		dumpEmpty(t, fs)
	})
}

// What POSIX wrote and did not flush yet is what objects show.
func TestUnflushedObject(t *testing.T) {
	onEngines(t, func(t *testing.T, fs *FS) {
		bucketFS(t, fs)
		put(t, fs, "k", "object")
		bucket := mustLookup(t, fs, RootIno, "bucket").Ino
		f, err := fs.Open(bg, Root, mustLookup(t, fs, bucket, "k").Ino, OpenRead|OpenWrite)
		want(t, err, nil)
		_, err = f.WriteAt(bg, []byte("written"), 3)
		want(t, err, nil)
		r, err := fs.ListObjects(bg, "bucket", ListOptions{MaxKeys: 10})
		if err != nil || r.Objects[0].Size != 10 || r.Objects[0].ETag == md5Hex("object") {
			t.Errorf("list: %+v %v", r, err)
		}
		old := md5Hex("object")
		_, err = fs.PutObject(bg, ObjectName{"bucket", "k"}, strings.NewReader("x"), PutOptions{Size: 1, Cond: Preconditions{IfMatch: []ETag{old}}})
		wantErr(t, err, ErrPrecondition)
		body, info := get(t, fs, "k")
		if body != "objwritten" || info.ETag == old || !strings.Contains(string(info.ETag), "-") {
			t.Errorf("%q %+v", body, info)
		}
		// The checksum is computed, and kept while the bytes stay.
		for range 2 {
			head, err := fs.HeadObject(bg, ObjectName{"bucket", "k"}, GetOptions{Checksums: true})
			h, _ := ChecksumCRC64NVME.New()
			h.Write([]byte("objwritten"))
			if err != nil || len(head.Checksums) != 1 || string(head.Checksums[0].Value) != string(h.Sum(nil)) {
				t.Errorf("%+v %v", head, err)
			}
		}
		// An open file survives its deletion, and a PUT makes its writers stale; not
		// those who have not written.
		idle, err := fs.Open(bg, Root, f.Ino(), OpenRead|OpenWrite)
		want(t, err, nil)
		_, err = f.WriteAt(bg, []byte("lost"), 0)
		want(t, err, nil)
		put(t, fs, "k", "Replaced")
		_, err = idle.WriteAt(bg, []byte("r"), 0)
		want(t, err, nil)
		want(t, idle.Sync(bg), nil)
		want(t, idle.Close(bg), nil)
		if err := f.Sync(bg); !errors.Is(err, ErrStale) {
			t.Errorf("sync: %v", err)
		}
		f.Close(bg)
		if body, _ := get(t, fs, "k"); body != "replaced" {
			t.Errorf("%q", body)
		}
	})
}
