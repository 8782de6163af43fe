package rados

import (
	"context"
	"testing"
)

// docs/cluster.md names what a blob costs.
func TestRequests(t *testing.T) {
	for size, want := range map[int]struct{ write, first, again, late, remove int64 }{
		100:            {write: 2, first: 1, again: 1, remove: 3},
		partData:       {write: 2, first: 1, again: 1, remove: 3},
		3*partData + 5: {write: 5, first: 4, again: 4, late: 1, remove: 6},
	} {
		pool := newMemPool()
		a, b := openMem(t, pool), openMem(t, pool)
		costs := func(what string, want int64, do func() error) {
			t.Helper()
			before := pool.requests.Load()
			if err := do(); err != nil {
				t.Errorf("%d bytes, %s: %v", size, what, err)
			}
			if n := pool.requests.Load() - before; n != want {
				t.Errorf("%d bytes, %s: %d requests, want %d", size, what, n, want)
			}
		}
		costs("write", want.write, func() error { return store(a, testID, bytesOf(size)) })
		costs("read", want.first, func() error { return check(b, testID, bytesOf(size)) })
		costs("read again", want.again, func() error { return check(b, testID, bytesOf(size)) })
		if want.late > 0 {
			for _, client := range []*Blobs{a, b} {
				costs("read of a later part", want.late, func() error {
					_, err := client.ReadAt(context.Background(), testID, make([]byte, 10), partData+100)
					return err
				})
			}
		}
		costs("delete", want.remove, func() error { return b.Delete(context.Background(), testID) })
	}
}
