package lock

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestTryLockSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(0)
		holder, other := Owner{"a", "1"}, Owner{"b", "2"}
		refused := func(what string, s Space, after time.Duration) {
			t.Helper()
			begin := time.Now()
			err := m.TryLockSoon(t.Context(), 1, s, Lock{Owner: other, End: EOF, Type: Exclusive})
			if took := time.Since(begin); !errors.Is(err, ErrWouldBlock) || took != after {
				t.Errorf("%s: %v after %v, want a refusal after %v", what, err, took, after)
			}
		}
		for _, s := range []Space{Range, Flock} {
			want := Lock{Owner: other, End: EOF, Type: Exclusive}
			mustLock(t, m, 1, s, Lock{Owner: holder, End: EOF, Type: Exclusive})
			refused("a lock that stays", s, 0)

			m.Closing(1, holder)
			refused("a copy stays open", s, closingWait)
			refused("and the next", s, 0)
			m.Closing(1, holder)
			time.Sleep(10 * closingWait)
			refused("another copy is closed", s, closingWait)
			refused("and the next", s, 0)

			m.Closing(1, holder)
			go func() {
				time.Sleep(closingWait / 10)
				m.ReleaseOwner(1, s, holder)
				m.Closed(1, holder)
			}()
			if _, held, err := m.TestSoon(t.Context(), 1, s, want); held || err != nil {
				t.Errorf("test of a lock that is being closed: %v %v", held, err)
			}
			if err := m.TryLockSoon(t.Context(), 1, s, want); err != nil {
				t.Errorf("a lock that was closed: %v", err)
			}
			m.ReleaseOwner(1, s, other)
		}

		mustLock(t, m, 1, Flock, Lock{Owner: holder, End: EOF, Type: Exclusive})
		m.Closing(1, holder)
		m.Closed(1, holder)
		refused("in use again", Flock, 0)
		m.ReleaseOwner(1, Flock, holder)
		if len(m.closing) != 0 || m.Count() != 0 || len(m.files) != 0 {
			t.Errorf("left: %d closing, %d locks, %d files", len(m.closing), m.Count(), len(m.files))
		}
	})
}

// TestUntold: whoever meets a lock whose close nobody tells of waits, each time, until it is known;
// not for that of another file, and few of one client at a time.
func TestUntold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(0)
		try := func(after time.Duration) (err error) {
			t.Helper()
			begin := time.Now()
			err = m.TryLockSoon(t.Context(), 1, Range, rng(bob, Exclusive, 0, EOF))
			if took := time.Since(begin); took != after {
				t.Errorf("after %v, want %v", took, after)
			}
			return err
		}
		refused := func(after time.Duration) {
			t.Helper()
			if err := try(after); !errors.Is(err, ErrWouldBlock) {
				t.Errorf("a lock that is held: %v", err)
			}
		}
		mustLock(t, m, 1, Range, rng(alice, Shared, 0, 9))
		m.Untold(1, alice)
		m.Untold(2, alice)
		refused(closingWait)
		refused(closingWait)
		m.Closing(1, alice)
		m.Closed(2, alice) // of another file
		refused(closingWait)
		refused(closingWait)

		var wg sync.WaitGroup
		for range maxSoon {
			wg.Go(func() { refused(closingWait) })
		}
		synctest.Wait()
		refused(0)
		wg.Wait()
		if len(m.soons) != 0 {
			t.Errorf("%v wait", m.soons)
		}

		wg.Go(func() {
			time.Sleep(closingWait / 2)
			m.ReleaseOwner(1, Range, alice)
			m.Closed(1, alice)
		})
		if err := try(closingWait / 2); err != nil {
			t.Error(err)
		}
		wg.Wait()
		if len(m.closing) != 0 {
			t.Errorf("left: %v", m.closing)
		}
	})
}

// Two who try at once wait together, and for one after the other no longer than
// for one.
func TestTryLockSoonOfSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(0)
		mustLock(t, m, 1, Range, rng(alice, Exclusive, 0, 9))
		mustLock(t, m, 1, Range, rng(bob, Exclusive, 10, 19))
		m.Closing(1, alice)
		begin := time.Now()
		go func() {
			time.Sleep(closingWait / 2)
			m.Closing(1, bob)
			m.ReleaseOwner(1, Range, alice)
			m.Closed(1, alice)
		}()
		done := make(chan error, 2)
		for range cap(done) {
			go func() { done <- m.TryLockSoon(t.Context(), 1, Range, rng(carol, Exclusive, 0, EOF)) }()
		}
		for range cap(done) {
			if err := <-done; !errors.Is(err, ErrWouldBlock) || time.Since(begin) != closingWait {
				t.Errorf("%v after %v", err, time.Since(begin))
			}
		}
	})
}
