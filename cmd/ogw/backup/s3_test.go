package backup

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ogw/httpapi/s3"
	"ogw/vfs/users"
)

// testBucket is a bucket of an S3 door over a store in memory.
func testBucket(t *testing.T) *S3 {
	t.Helper()
	return testBucketBehind(t, func(door http.Handler) http.Handler { return door })
}

// testBucketBehind is one whose door something stands before.
func testBucketBehind(t *testing.T, before func(door http.Handler) http.Handler) *S3 {
	t.Helper()
	st := newStore(t)
	const id, secret = "OGW0BACKUP0TEST", "a secret of a test, long enough to be one"
	err := st.fs.Users().Add(t.Context(), users.User{Name: "root", Admin: true, Keys: []users.AccessKey{{ID: id, Secret: secret}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.fs.CreateBucket(t.Context(), "backups", nil); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(before(s3.New(st.fs, s3.Config{})))
	t.Cleanup(server.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", id)
	t.Setenv("AWS_SECRET_ACCESS_KEY", secret)
	b, err := NewS3("s3://backups/some/prefix/", S3Config{Endpoint: server.URL, Region: "us-east-1"}, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A folder and a bucket do the same.
func TestStorages(t *testing.T) {
	for name, s := range map[string]Storage{"folder": testDir(t), "folder of NFS": nfsDir(t, unix.EINVAL), "bucket": testBucket(t)} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			get := func(name string, off, n int64) string {
				b, err := s.Get(ctx, name, off, n)
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				return string(b)
			}
			if _, err := s.Get(ctx, "packs/1/1", 0, -1); !errors.Is(err, ErrNotExist) {
				t.Errorf("what is not there: %v", err)
			}
			for _, name := range []string{"packs/1/1", "packs/1/2", "packs/10/1", "config"} {
				if err := s.Put(ctx, name, []byte("of "+name), false); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Put(ctx, "packs/1/1", []byte("other"), false); !errors.Is(err, ErrExist) {
				t.Errorf("over another: %v", err)
			}
			if got := get("packs/1/1", 0, -1); got != "of packs/1/1" {
				t.Errorf("%q", got)
			}
			if err := s.Put(ctx, "packs/1/1", []byte("other"), true); err != nil {
				t.Error(err)
			}
			if got := get("packs/1/1", 0, -1) + " " + get("packs/1/1", 1, 3) + " " + get("packs/1/1", 2, 100) + " " + get("packs/1/1", 3, -1); got != "other the her er" {
				t.Errorf("%q", got)
			}
			list := func(prefix string) (names []string) {
				err := s.List(ctx, prefix, func(o Object) error {
					names = append(names, fmt.Sprint(o.Name, " ", o.Size))
					return nil
				})
				if err != nil {
					t.Error(err)
				}
				return names
			}
			if got := list("packs/1/"); !slices.Equal(got, []string{"packs/1/1 5", "packs/1/2 12"}) {
				t.Errorf("%q", got)
			}
			if got := list(""); len(got) != 4 {
				t.Errorf("%q", got)
			}
			if got := list("none/"); len(got) != 0 {
				t.Errorf("%q", got)
			}
			for range 2 {
				if err := s.Delete(ctx, "packs/1/1"); err != nil {
					t.Error(err)
				}
			}
			if got := list("packs/"); len(got) != 2 {
				t.Errorf("%q", got)
			}
			_, lock, err := s.Lock(ctx, NewHolder("backup"))
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := s.Lock(ctx, NewHolder("prune")); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), "backup by process") {
				t.Errorf("a second lock: %v", err)
			}
			lock.Release()
			_, lock, err = s.Lock(ctx, NewHolder("prune"))
			if err != nil {
				t.Fatal(err)
			}
			lock.Release()
		})
	}
}

// The lock of a bucket is taken over from who is known to have ended at once,
// from who is silent later, and who lost it learns of that.
func TestBucketLock(t *testing.T) {
	b := testBucket(t)
	ctx := t.Context()
	gone := NewHolder("backup")
	gone.Start = "1" // another process had this PID
	if _, err := b.writeLock(ctx, gone, ""); err != nil {
		t.Fatal(err)
	}
	_, lock, err := b.Lock(ctx, NewHolder("backup"))
	if err != nil {
		t.Fatalf("of a process that ended: %v", err)
	}
	lock.Release()

	far := NewHolder("backup")
	far.Machine = "another"
	if _, err := b.writeLock(ctx, far, ""); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Lock(ctx, NewHolder("backup")); !errors.Is(err, ErrLocked) {
		t.Errorf("of another machine: %v", err)
	}
	b.stale = 0 // times in a bucket are whole seconds
	b.beat = 10 * time.Millisecond
	locked, lock, err := b.Lock(ctx, NewHolder("backup"))
	if err != nil {
		t.Fatalf("of a silent one: %v", err)
	}
	for err := ErrExist; err != nil; { // the holder may write its beat in between
		_, info, e := b.get(ctx, lockName, 0, -1)
		if e != nil {
			t.Fatal(e)
		}
		if _, err = b.writeLock(ctx, far, info.ETag); err != nil && !errors.Is(err, ErrExist) {
			t.Fatal(err)
		}
	}
	select {
	case <-locked.Done():
		if err := context.Cause(locked); !strings.Contains(err.Error(), "lock of the repository was lost") {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Error("the lock was taken away, and nobody noticed")
	}
	lock.Release()
	if _, err := b.Get(ctx, lockName, 0, -1); err != nil {
		t.Errorf("the lock of the next holder: %v", err)
	}
}
