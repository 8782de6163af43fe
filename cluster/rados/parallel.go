package rados

import (
	"context"
	"sync"
)

// maxParallel is how many requests one call has under way. A round trip is a fraction of a
// millisecond, and an OSD is asked for little.
const maxParallel = 32

// parallel calls fn for 0 to n-1, several at a time, and returns an error of one. After one
// it begins no others.
func parallel(ctx context.Context, n int, fn func(i int) error) error {
	if n == 1 {
		return fn(0)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failed error
	next := 0
	take := func(err error) (i int, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if failed == nil {
			if failed = err; err == nil {
				failed = ctx.Err()
			}
		}
		if failed != nil || next == n {
			return 0, false
		}
		next++
		return next - 1, true
	}
	for range min(n, maxParallel) {
		wg.Go(func() {
			for i, ok := take(nil); ok; i, ok = take(nil) {
				if err := fn(i); err != nil {
					take(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return failed
}
