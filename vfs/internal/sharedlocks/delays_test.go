package sharedlocks

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/clustertest"
	"ogw/vfs/lock"
)

// slowly is a slow engine that knows when what began before is over.
type slowly struct {
	clustertest.Slow
	g *gateway
	// begun are the transactions since the doubts of before were settled.
	mu    sync.Mutex
	begun *sync.WaitGroup
}

func newSlowly(g *gateway) *slowly {
	return &slowly{Slow: clustertest.Slow{KV: g.cfg.KV, Pause: pause, Lost: func() int { return 50 }}, g: g, begun: new(sync.WaitGroup)}
}

func pause() {
	d := time.Duration(rand.Int64N(int64(20 * time.Millisecond)))
	if rand.IntN(20) == 0 {
		d *= 50
	}
	time.Sleep(d)
}

func (k *slowly) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	k.mu.Lock()
	begun := k.begun
	begun.Add(1)
	k.mu.Unlock()
	defer begun.Done()
	return k.Slow.Update(ctx, fn)
}

// settle settles what was in doubt, once nothing that began before is under way.
func (k *slowly) settle() {
	k.g.asked.Lock()
	doubts := k.g.doubts
	k.g.doubts = nil
	k.g.asked.Unlock()
	if len(doubts) == 0 {
		return
	}
	k.mu.Lock()
	before := k.begun
	k.begun = new(sync.WaitGroup)
	k.mu.Unlock()
	before.Wait()
	for _, fn := range doubts {
		fn()
	}
}

// beliefs are what programs know that they hold: no two of them at a time what excludes each
// other.
type beliefs struct {
	t     *testing.T
	mu    sync.Mutex
	held  map[uint64][]lock.Lock
	got   int
	never atomic.Bool // is a remote client gone with a gateway
}

// has notes what an owner was told that it has, unless its gateway is gone.
func (b *beliefs) has(ino uint64, l lock.Lock, gone *atomic.Bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if gone.Load() {
		return
	}
	b.got++
	for _, h := range b.held[ino] {
		if h.Owner != l.Owner && (h.Type == lock.Exclusive || l.Type == lock.Exclusive) && h.Start <= l.End && l.Start <= h.End {
			b.t.Errorf("file %d: both have it:\n%+v\n%+v", ino, h, l)
		}
	}
	b.held[ino] = append(b.held[ino], l)
}

// lets notes what owners do not rely on any more.
func (b *beliefs) lets(is func(ino uint64, l lock.Lock) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for ino := range b.held {
		b.held[ino] = slices.DeleteFunc(b.held[ino], func(l lock.Lock) bool { return is(ino, l) })
	}
}

// program locks and unlocks at a gateway, until it is gone.
func (b *beliefs) program(g *gateway, gone *atomic.Bool, o lock.Owner, until time.Time) {
	for time.Now().Before(until) && !gone.Load() {
		ino, start := rand.Uint64N(2)+1, rand.Uint64N(8)
		l := lock.Lock{Owner: o, Type: lock.Type(rand.IntN(2)), Start: start, End: start + rand.Uint64N(8)}
		// What it converts, it does not rely on meanwhile.
		b.lets(func(i uint64, h lock.Lock) bool { return i == ino && h.Owner == o })
		var err error
		switch rand.IntN(3) {
		case 0:
			err = g.TryLock(bg, ino, lock.Range, l)
		case 1:
			ctx, stop := context.WithTimeout(bg, time.Duration(rand.Int64N(int64(2*time.Second))))
			err = g.Lock(ctx, ino, lock.Range, l)
			stop()
		case 2: // interrupted, and asks again at once
			for range 3 {
				got := make(chan error, 1)
				cancel, waiting, e := g.LockFunc(bg, ino, lock.Range, l, func(err error) { got <- err })
				if err = e; err != nil || !waiting {
					break
				}
				time.Sleep(time.Duration(rand.Int64N(int64(100 * time.Millisecond))))
				if !cancel() {
					err = <-got
					break
				}
				err = lock.ErrInterrupted
			}
		}
		if err == nil {
			b.has(ino, l, gone)
		}
		time.Sleep(time.Duration(rand.Int64N(int64(100 * time.Millisecond))))
		if rand.IntN(3) > 0 {
			b.lets(func(i uint64, h lock.Lock) bool { return i == ino && h.Owner == o })
			if err := g.Unlock(bg, ino, lock.Range, lock.Lock{Owner: o, End: lock.EOF}); err != nil {
				b.t.Errorf("unlock: %v", err)
			}
		}
	}
}

// client is another machine, which goes to any gateway, and back when that does not answer.
func (b *beliefs) client(gates func() *gateway, o lock.Owner, until time.Time) {
	for time.Now().Before(until) {
		ino, start := rand.Uint64N(2)+1, rand.Uint64N(8)
		l := lock.Lock{Owner: o, Type: lock.Type(rand.IntN(2)), Start: start, End: start + rand.Uint64N(8)}
		b.lets(func(i uint64, h lock.Lock) bool { return i == ino && h.Owner == o })
		g := gates()
		if rand.IntN(2) == 0 {
			if g.TryLock(bg, ino, lock.Range, l) == nil {
				b.has(ino, l, &b.never)
			}
		} else {
			got := make(chan error, 1)
			_, waiting, err := g.LockFunc(bg, ino, lock.Range, l, func(err error) { got <- err })
			if err == nil && !waiting {
				b.has(ino, l, &b.never)
			}
			if waiting {
				select {
				case err := <-got:
					if err == nil {
						b.has(ino, l, &b.never)
					}
				case <-time.After(time.Duration(rand.Int64N(int64(2 * time.Second)))):
					for { // CANCEL
						if _, err := gates().Withdraw(bg, ino, lock.Range, l); err == nil {
							break
						}
						time.Sleep(100 * time.Millisecond)
					}
				}
			}
		}
		time.Sleep(time.Duration(rand.Int64N(int64(100 * time.Millisecond))))
		b.lets(func(i uint64, h lock.Lock) bool { return i == ino && h.Owner == o })
		for { // it asks until it is done
			err := gates().Unlock(bg, ino, lock.Range, lock.Lock{Owner: o, End: lock.EOF})
			if err == nil {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// However slow the store is, and whatever answers are lost, gateways end and programs are
// interrupted: no two have at a time what excludes each other, and in the end nothing is left.
func TestDelays(t *testing.T) {
	span := time.Minute
	if s := os.Getenv("OGW_LOCK_MINUTES"); s != "" { // of time that costs little
		n, err := strconv.Atoi(s)
		must(t, err)
		span = time.Duration(n) * time.Minute
	}
	onStore(t, func(t *testing.T, s *store) {
		b := &beliefs{t: t, held: map[uint64][]lock.Lock{}}
		until := time.Now().Add(span)
		var mu sync.Mutex // of what follows
		var gates []*gateway
		var wg, settling sync.WaitGroup
		open := func() (*gateway, *atomic.Bool) {
			g, gone := s.open(), new(atomic.Bool)
			k := newSlowly(g)
			g.cfg.KV = k
			settling.Go(func() {
				for time.Now().Before(until.Add(time.Minute)) {
					time.Sleep(time.Second)
					k.settle()
				}
			})
			for i := range 4 {
				wg.Go(func() { b.program(g, gone, owner(g, fmt.Sprint(i)), until) })
			}
			return g, gone
		}
		gone := make([]*atomic.Bool, 3)
		for i := range gone {
			var g *gateway
			g, gone[i] = open()
			gates = append(gates, g)
		}
		for i := range 3 {
			wg.Go(func() {
				b.client(func() *gateway {
					mu.Lock()
					defer mu.Unlock()
					return gates[rand.IntN(len(gates))]
				}, remote(fmt.Sprint("10.0.0.", i), "1"), until)
			})
		}
		for time.Now().Add(5 * time.Second).Before(until) {
			time.Sleep(5 * time.Second)
			i := rand.IntN(len(gates))
			mu.Lock()
			g := gates[i]
			gone[i].Store(true)
			mu.Unlock()
			b.lets(func(_ uint64, l lock.Lock) bool { return l.Owner.Client == owner(g, "").Client })
			g.end()
			next, flag := open()
			mu.Lock()
			gates[i], gone[i] = next, flag
			mu.Unlock()
			if err := next.Sweep(bg); err != nil && !errors.Is(err, cluster.ErrUnavailable) {
				t.Errorf("sweep: %v", err)
			}
		}
		wg.Wait()
		for _, g := range gates {
			g.ReleaseClient(owner(g, "").Client)
		}
		for i := range 3 {
			for gates[0].Rebooted(bg, remote(fmt.Sprint("10.0.0.", i), "").Client, 0) != nil {
				time.Sleep(time.Second)
			}
		}
		settling.Wait()
		t.Logf("%d locks", b.got)
		s.empty(gates...)
	})
}

// A request that waits, and would wait for itself once the same transaction has granted others
// what was late, is not taken for granted.
func TestDeadlockInSameTransaction(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b := s.open(), s.open()
		p, r, other, q := owner(a, "p"), owner(a, "r"), owner(a, "other"), owner(b, "q")
		must(t, a.TryLock(bg, 2, lock.Range, exclusive(r)))
		must(t, a.TryLock(bg, 1, lock.Range, rng(p, 0, 9)))
		must(t, a.TryLock(bg, 1, lock.Range, rng(other, 20, 29)))
		gets, _ := waits(t, b, 1, lock.Range, rng(q, 0, 9))
		waits(t, b, 2, lock.Range, exclusive(q))
		nothing(t, gets)
		a.away.Store(true)
		must(t, a.Unlock(bg, 1, lock.Range, rng(p, 0, 9))) // late
		a.away.Store(false)
		got := make(chan error, 1)
		_, waiting, err := a.LockFunc(bg, 1, lock.Range, rng(r, 5, 25), func(err error) { got <- err })
		if err == nil && waiting {
			err = <-got
		}
		wantErr(t, err, lock.ErrDeadlock)
		must(t, <-gets)
	})
}

// A request that is given up, and may be given up again, leaves what the next one was granted
// before anybody here knows of it.
func TestCancelTakesNext(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b := s.open(), s.open()
		p, h := owner(a, "p"), owner(b, "h")
		must(t, b.TryLock(bg, 1, lock.Range, exclusive(h)))
		_, cancel := waits(t, a, 1, lock.Range, rng(p, 0, 9))
		a.lost.Store(1)
		if !cancel() {
			t.Fatal("not cancelled")
		}
		got, _ := waits(t, a, 1, lock.Range, rng(p, 0, 9))
		must(t, b.Unlock(bg, 1, lock.Range, exclusive(h))) // grants it
		must(t, a.TryLock(bg, 1, lock.Range, rng(owner(a, "other"), 50, 59)))
		must(t, <-got)
		wantErr(t, b.TryLock(bg, 1, lock.Range, rng(h, 5, 5)), lock.ErrWouldBlock)
	})
}
