package session

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
)

// hangs is a store of which some Updates hang until their contexts end.
type hangs struct {
	cluster.KV
	left, updates atomic.Int64
	fail          atomic.Bool // at once
}

func (k *hangs) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	k.updates.Add(1)
	if k.fail.Load() {
		return cluster.ErrUnavailable
	}
	if k.left.Add(-1) >= 0 {
		<-ctx.Done()
		return ctx.Err()
	}
	return k.KV.Update(ctx, fn)
}

// beating returns a lease that beats by a clock of the test's, and its end.
func beating(t *testing.T, kv cluster.KV) (l *Lease, end func()) {
	begin := time.Now()
	l, err := newLease(kv, nil, besideMember("a"), quiet)
	if err != nil {
		t.Fatal(err)
	}
	l.clock = func() time.Duration { return time.Since(begin) }
	if err := l.take(bg); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(bg)
	l.beat.Go(func() { l.run(ctx) })
	return l, func() {
		stop()
		l.beat.Wait()
	}
}

// A beat that gets no answer costs no lease: the next one comes at once.
func TestBeatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mem.New(mem.Options{})
		defer c.Close()
		kv := &hangs{KV: c.KV}
		l, end := beating(t, kv)
		defer end()
		for range 3 {
			kv.left.Store(1)
			for begin := l.clock(); l.clock()-begin < 2*EvictAfter; time.Sleep(BeatEvery / 20) {
				if err := l.Live(); err != nil {
					t.Fatalf("%v after the beat began to hang: %v", l.clock()-begin, err)
				}
			}
		}
	})
}

// While beats fail at once they are tried again soon, and not without a pause.
func TestBeatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mem.New(mem.Options{})
		defer c.Close()
		kv := &hangs{KV: c.KV}
		l, end := beating(t, kv)
		defer end()
		kv.fail.Store(true)
		before := kv.updates.Load()
		time.Sleep(LapseAfter - BeatEvery)
		if n := kv.updates.Load() - before; n > int64((LapseAfter-BeatEvery)/retryEvery) {
			t.Errorf("%d beats in %v", n, LapseAfter-BeatEvery)
		}
		kv.fail.Store(false)
		time.Sleep(BeatEvery - 1)
		if err := l.Live(); err != nil {
			t.Error(err)
		}
	})
}
