package sharedlocks

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/vfs/lock"
)

// rng is an exclusive lock of a range.
func rng(o lock.Owner, from, to uint64) lock.Lock {
	return lock.Lock{Owner: o, Type: lock.Exclusive, Start: from, End: to}
}

// An unmount while many programs wait for one file.
func TestManyGiveUp(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b := s.open(), s.open()
		must(t, b.TryLock(bg, 1, lock.Range, exclusive(owner(b, "h"))))
		must(t, a.TryLock(bg, 2, lock.Range, exclusive(owner(a, "other"))))
		for i := range 150 {
			waits(t, a, 1, lock.Range, exclusive(owner(a, fmt.Sprint(i))))
		}
		a.ReleaseClient(owner(a, "").Client)
		time.Sleep(time.Minute)
		b.ReleaseOwner(1, lock.Range, owner(b, "h"))
		time.Sleep(time.Minute)
		if err := a.refresh(1, nil); err != nil {
			t.Error(err)
		}
		c := exclusive(owner(b, "late"))
		must(t, b.TryLock(bg, 1, lock.Range, c))
		must(t, b.TryLock(bg, 2, lock.Range, c))
	})
}

// The same, of many who are interrupted while the store is away.
func TestManyCancelled(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b := s.open(), s.open()
		must(t, b.TryLock(bg, 1, lock.Range, exclusive(owner(b, "h"))))
		var cancels []func() bool
		for i := range 150 {
			_, c := waits(t, a, 1, lock.Range, exclusive(owner(a, fmt.Sprint(i))))
			cancels = append(cancels, c)
		}
		a.away.Store(true)
		for _, c := range cancels {
			c()
		}
		a.away.Store(false)
		a.settleDoubts()
		time.Sleep(time.Minute)
		if err := a.refresh(1, nil); err != nil {
			t.Error(err)
		}
	})
}

// The unlock of all, in doubt, is done again after a thread was granted a part.
func TestWholeAgain(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b := s.open(), s.open()
		p := owner(a, "p")
		must(t, b.TryLock(bg, 1, lock.Range, rng(owner(b, "h"), 100, 200)))
		must(t, a.TryLock(bg, 1, lock.Range, rng(p, 0, 10)))
		got, _ := waits(t, a, 1, lock.Range, rng(p, 100, 200)) // a thread
		a.lost.Store(1)
		a.ReleaseOwner(1, lock.Range, p) // another thread closes; done, but nobody is told
		time.Sleep(2 * time.Second)
		b.ReleaseOwner(1, lock.Range, owner(b, "h"))
		must(t, <-got) // p has 100..200
		a.settleDoubts()
		time.Sleep(2 * time.Second)
		if err := b.TryLock(bg, 1, lock.Range, rng(owner(b, "2"), 100, 200)); err == nil {
			t.Error("two holders")
		}
	})
}

// A wait that is given up late leaves what another thread was granted meanwhile.
func TestCancelTakesMore(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b := s.open(), s.open()
		p := owner(a, "p")
		must(t, b.TryLock(bg, 1, lock.Range, rng(owner(b, "h"), 50, 60)))
		_, cancel := waits(t, a, 1, lock.Range, rng(p, 0, 100))
		must(t, a.TryLock(bg, 1, lock.Range, rng(p, 0, 10))) // another thread
		a.lost.Store(1)
		if !cancel() {
			t.Fatal("not cancelled")
		}
		a.settleDoubts()
		time.Sleep(2 * time.Second)
		if err := b.TryLock(bg, 1, lock.Range, rng(owner(b, "2"), 0, 10)); err == nil {
			t.Error("two holders")
		}
	})
}

// What the server before waited for is not granted after the take-over.
func TestOldWaiter(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		old, b := s.open(), s.open()
		p := owner(old, "p")
		must(t, old.TryLock(bg, 1, lock.Range, rng(p, 0, 10)))
		must(t, b.TryLock(bg, 1, lock.Range, rng(owner(b, "h"), 100, 200)))
		waits(t, old, 1, lock.Range, rng(p, 100, 200))
		old.Close() // its fence stays
		next := s.open()
		must(t, next.Reclaim(bg, 1, lock.Range, rng(p, 0, 10)))
		_, cancel := waits(t, next, 1, lock.Range, rng(p, 100, 200)) // sent again
		if !cancel() {                                               // a signal
			t.Fatal("not cancelled")
		}
		b.ReleaseOwner(1, lock.Range, owner(b, "h"))
		time.Sleep(time.Second)
		old.end()
		time.Sleep(time.Second)
		if err := b.TryLock(bg, 1, lock.Range, rng(owner(b, "2"), 0, 10)); err == nil {
			t.Error("two holders")
		}
	})
}

// What was unlocked and closed while the store was away the next server does not take back.
func TestJournalLate(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b := s.open(), s.open()
		p := owner(a, "p")
		var book []lock.Lock
		a.SetJournal(p.Client, func(_ uint64, sp lock.Space, held []lock.Lock) {
			if sp == lock.Range {
				book = held
			}
		})
		must(t, a.TryLock(bg, 1, lock.Range, exclusive(p)))
		a.away.Store(true)
		must(t, a.Unlock(bg, 1, lock.Range, exclusive(p)))
		a.ReleaseOwner(1, lock.Range, p) // the program ends
		a.end()
		next := s.open()
		for _, l := range slices.Clone(book) {
			must(t, next.Reclaim(bg, 1, lock.Range, l))
		}
		if err := b.TryLock(bg, 1, lock.Range, exclusive(owner(b, "1"))); err != nil {
			t.Error("held for who is gone:", err)
		}
	})
}

// slow has the next Update commit when release is closed, and end without an answer.
type slow struct {
	cluster.KV
	next    atomic.Bool
	release chan struct{}
	ended   chan error
}

func (k *slow) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	if !k.next.Swap(false) {
		return k.KV.Update(ctx, fn)
	}
	ran := make(chan struct{})
	again := false
	go func() {
		k.ended <- k.KV.Update(bg, func(x cluster.Txn) error {
			if again {
				return errAway
			}
			again = true
			err := fn(x)
			close(ran)
			<-k.release
			return err
		})
	}()
	<-ran
	return errAway
}

// A request comes late, after its owner asked for something else in vain.
func TestLateRequest(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b := s.open(), s.open()
		k := &slow{KV: a.cfg.KV, release: make(chan struct{}), ended: make(chan error, 1)}
		a.cfg.KV = k
		p := owner(a, "p")
		must(t, b.TryLock(bg, 1, lock.Range, exclusive(owner(b, "h"))))
		k.next.Store(true)
		if _, _, err := a.LockFunc(bg, 1, lock.Range, exclusive(p), func(error) {}); err == nil {
			t.Error("it is answered")
		}
		wantErr(t, a.TryLock(bg, 1, lock.Range, rng(p, 0, 10)), lock.ErrWouldBlock)
		close(k.release)
		<-k.ended
		a.ReleaseOwner(1, lock.Range, p) // the program ends
		a.settleDoubts()
		time.Sleep(time.Minute)
		a.ReleaseOwner(1, lock.Range, p)
		time.Sleep(time.Minute)
		b.ReleaseOwner(1, lock.Range, owner(b, "h"))
		time.Sleep(time.Minute)
		if err := b.TryLock(bg, 1, lock.Range, exclusive(owner(b, "2"))); err != nil {
			t.Error("held for who is gone:", err)
		}
	})
}

// lag has each Update take a while.
type lag struct{ cluster.KV }

func (k lag) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	time.Sleep(20 * time.Millisecond)
	if err := ctx.Err(); err != nil {
		return err
	}
	return k.KV.Update(ctx, fn)
}

// No failure at all: many processes that wait are killed.
func TestManyKilled(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b := s.open(), s.open()
		must(t, b.TryLock(bg, 1, lock.Range, exclusive(owner(b, "h"))))
		var cancels []func() bool
		for i := range 400 {
			_, c := waits(t, a, 1, lock.Range, exclusive(owner(a, fmt.Sprint(i))))
			cancels = append(cancels, c)
		}
		a.cfg.KV = lag{a.cfg.KV}
		for _, c := range cancels {
			go c()
		}
		time.Sleep(30 * time.Second)
		a.settleDoubts()
		time.Sleep(time.Minute)
		if err := a.refresh(1, nil); err != nil {
			t.Error(err)
		}
	})
}

// Many requests that are given up keep no other lock of the file from being granted and released.
func TestSweepOrLate(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b := s.open(), s.open()
		must(t, b.TryLock(bg, 1, lock.Flock, exclusive(owner(b, "h"))))
		must(t, b.TryLock(bg, 1, lock.Range, exclusive(owner(b, "h"))))
		got, _ := waits(t, a, 1, lock.Flock, exclusive(owner(a, "f"))) // the same file, another space
		for i := range 150 {
			waits(t, a, 1, lock.Range, exclusive(owner(a, fmt.Sprint(i))))
		}
		a.mu.Lock()
		f := a.files[1]
		for _, w := range f.waiters {
			if w.space == lock.Range {
				a.giveUp(f, w)
			}
		}
		a.mu.Unlock()
		b.ReleaseOwner(1, lock.Flock, owner(b, "h"))
		time.Sleep(time.Minute)
		select {
		case err := <-got:
			must(t, err)
		default:
			t.Error("never granted")
		}
		a.ReleaseOwner(1, lock.Flock, owner(a, "f"))
		time.Sleep(time.Minute)
		if err := b.TryLock(bg, 1, lock.Flock, exclusive(owner(b, "h"))); err != nil {
			t.Error("never released:", err)
		}
	})
}

// held has the answer of the next Update take until release is closed.
type held struct {
	cluster.KV
	next    atomic.Bool
	done    chan struct{}
	release chan struct{}
}

func (k *held) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	holds := k.next.Swap(false)
	err := k.KV.Update(ctx, fn)
	if holds {
		close(k.done)
		<-k.release
	}
	return err
}

// A release read before a late lock came, and is answered after the doubt is settled.
func TestSettledMeanwhile(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b := s.open(), s.open()
		k := &slow{KV: a.cfg.KV, release: make(chan struct{}), ended: make(chan error, 1)}
		h := &held{KV: k, done: make(chan struct{}), release: make(chan struct{})}
		a.cfg.KV = h
		p := owner(a, "p")
		k.next.Store(true)
		if err := a.TryLock(bg, 1, lock.Range, exclusive(p)); err == nil { // it may come
			t.Error("it is answered")
		}
		h.next.Store(true)
		over := make(chan struct{})
		go func() { a.ReleaseOwner(1, lock.Range, p); close(over) }() // finds nothing, writes nothing
		<-h.done
		close(k.release)
		<-k.ended
		a.settleDoubts()
		close(h.release)
		<-over
		time.Sleep(time.Minute)
		a.ReleaseOwner(1, lock.Range, p)
		time.Sleep(time.Minute)
		if err := b.TryLock(bg, 1, lock.Range, exclusive(owner(b, "2"))); err != nil {
			t.Error("held for who is gone:", err)
		}
	})
}
