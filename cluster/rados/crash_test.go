package rados

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ogw/cluster"
)

var testID = cluster.BlobID{Content: 7, Seq: 9}

const partData = partBlocks * cluster.BlockBytes

// testData differ from block to block.
var testData = func() (data []byte) {
	for block := range 10*partBlocks + 1 {
		data = append(data, bytes.Repeat([]byte{byte(block), byte(block >> 8), 1, 2}, cluster.BlockBytes/4)...)
	}
	return data
}()

func bytesOf(n int) []byte { return testData[:n] }

// store writes a blob in one go.
func store(b *Blobs, id cluster.BlobID, data []byte) error {
	ctx := context.Background()
	w, err := b.Create(ctx, id, -1)
	if err != nil {
		return err
	}
	defer w.Abort()
	if _, err := w.Write(data); err != nil {
		return err
	}
	_, _, err = w.Commit(ctx)
	return err
}

// check reads the whole blob.
func check(b *Blobs, id cluster.BlobID, data []byte) error {
	got := make([]byte, len(data))
	n, err := b.ReadAt(context.Background(), id, got, 0)
	if err == nil && (n != len(data) || !bytes.Equal(got, data)) {
		err = errors.New("other bytes")
	}
	return err
}

func listed(t *testing.T, b *Blobs) (n int) {
	t.Helper()
	if err := b.List(context.Background(), cluster.BlobID{}, func(cluster.BlobInfo) error { n++; return nil }); err != nil {
		t.Error(err)
	}
	return n
}

// fails lets n changes through; the next one is done if last says so, and none after it.
func fails(n int, last bool) func(string) (bool, error) {
	var calls atomic.Int64
	return func(string) (bool, error) {
		switch k := int(calls.Add(1)); {
		case k <= n:
			return true, nil
		case k == n+1 && last:
			return true, cluster.ErrUnavailable
		}
		return false, cluster.ErrUnavailable
	}
}

// clean holds the pool to what n whole blobs of one head and parts objects are. What others left is
// old by now.
func clean(t *testing.T, pool *memPool, blobs, parts int) {
	t.Helper()
	time.Sleep(staleEntry + time.Hour)
	b := openMem(t, pool)
	if n := listed(t, b); n != blobs {
		t.Errorf("%d blobs are listed, want %d", n, blobs)
	}
	if heads, found, entries := len(pool.names("blob/")), len(pool.names("part/")), pool.entries(); heads != blobs || found != parts || entries != blobs {
		t.Errorf("%d heads, %d parts, %d entries are left; want %d, %d, %d", heads, found, entries, blobs, parts, blobs)
	}
}

// A process that ends before any change of a commit, or after it without an answer, leaves a
// whole blob or none, which is listed if it can be read; and nothing else for long.
func TestCrashWriting(t *testing.T) {
	for _, size := range []int{100, 3*partData + 5} {
		for n := range 6 {
			for _, last := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					pool := newMemPool()
					a := openMem(t, pool)
					pool.fail = fails(n, last)
					err := store(a, testID, bytesOf(size))
					synctest.Wait() // what Abort began
					pool.fail = nil
					b := openMem(t, pool)
					read, seen := check(b, testID, bytesOf(size)), listed(t, b)
					switch {
					case err != nil && !errors.Is(err, cluster.ErrUnavailable):
						t.Errorf("%d changes: %v", n, err)
					case err == nil && read != nil, read == nil && seen != 1,
						read != nil && (seen != 0 || !errors.Is(read, cluster.ErrNotFound)):
						t.Errorf("%d changes, the next one done %v: stored %v, read %v, %d listed", n, last, err, read, seen)
					}
					parts := 0
					if read == nil {
						parts = (size - 1) / partData
					}
					clean(t, pool, seen, parts)
				})
			}
		}
	}
}

// A process that ends while it deletes leaves no blob that could be read in part, and
// nothing for long.
func TestCrashDeleting(t *testing.T) {
	for n := range 6 {
		for _, last := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				pool := newMemPool()
				a := openMem(t, pool)
				data := bytesOf(3*partData + 5)
				if err := store(a, testID, data); err != nil {
					t.Fatal(err)
				}
				pool.fail = fails(n, last)
				err := a.Delete(context.Background(), testID)
				pool.fail = nil
				b := openMem(t, pool)
				read := check(b, testID, data)
				if seen := listed(t, b); (read == nil) != (seen == 1) || read != nil && !errors.Is(read, cluster.ErrNotFound) || err == nil && read == nil {
					t.Errorf("%d changes, the next one done %v: deleted %v, read %v, %d listed", n, last, err, read, seen)
				}
				if read == nil {
					clean(t, pool, 1, 3)
				} else {
					clean(t, pool, 0, 0)
				}
			})
		}
	}
}

// A head whose first answer was lost is refused the second time, and is the writer's own.
func TestOwnHead(t *testing.T) {
	pool := newMemPool()
	b := openMem(t, pool)
	pool.fail = func(what string) (bool, error) {
		if strings.HasPrefix(what, "create blob/") {
			return true, fmt.Errorf("%w: it is there already", cluster.ErrExists)
		}
		return true, nil
	}
	if err := store(b, testID, bytesOf(partData+1)); err != nil {
		t.Error(err)
	}
	pool.fail = nil
	if err := store(b, testID, bytesOf(5)); !errors.Is(err, cluster.ErrExists) {
		t.Errorf("another writer: %v", err)
	}
	if err := check(b, testID, bytesOf(partData+1)); err != nil {
		t.Error(err)
	}
}

// A full pool refuses, and what was stored of the blob goes.
func TestFull(t *testing.T) {
	for _, full := range []string{"add index/", "create part/", "create blob/"} {
		synctest.Test(t, func(t *testing.T) {
			pool := newMemPool()
			b := openMem(t, pool)
			pool.fail = func(what string) (bool, error) {
				if strings.HasPrefix(what, full) || strings.HasPrefix(what, "create probe/") {
					return false, cluster.ErrNoSpace
				}
				return true, nil
			}
			if err := store(b, testID, bytesOf(2*partData+1)); !errors.Is(err, cluster.ErrNoSpace) {
				t.Errorf("%s: %v", full, err)
			}
			synctest.Wait()
			openMem(t, pool) // a full store is opened
			if parts, entries := len(pool.names("part/")), pool.entries(); parts+entries != 0 {
				t.Errorf("%s: %d parts and %d entries are left", full, parts, entries)
			}
		})
	}
}

// A writer that takes days keeps what it has stored, as long as it does something; one that
// does nothing for long gives up before anybody takes it for gone.
func TestSlowWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newMemPool()
		a, b := openMem(t, pool), openMem(t, pool)
		data := bytesOf(10*partData + 1)
		w, err := a.Create(context.Background(), testID, -1)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(data); i += partData {
			time.Sleep(writerLimit - time.Hour)
			if n := listed(t, b); n != 0 {
				t.Errorf("%d blobs", n)
			}
			if _, err := w.Write(data[i:min(i+partData, len(data))]); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(writerLimit - time.Hour)
		if _, _, err := w.Commit(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := check(b, testID, data); err != nil {
			t.Error(err)
		}
		other := cluster.BlobID{Content: 8}
		w, err = a.Create(context.Background(), other, -1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data[:2*partData+1]); err != nil {
			t.Fatal(err)
		}
		time.Sleep(writerLimit + time.Minute)
		if _, _, err := w.Commit(context.Background()); !errors.Is(err, cluster.ErrUnavailable) {
			t.Errorf("a writer that did nothing for %v: %v", writerLimit, err)
		}
		clean(t, pool, 1, 10)
	})
}
