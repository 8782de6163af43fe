package lock

import (
	"errors"
	"testing"
	"time"
)

func TestTryLockSoon(t *testing.T) {
	m := New(0)
	holder, other := Owner{"a", "1"}, Owner{"b", "2"}
	want := Lock{Owner: other, End: EOF, Type: Exclusive}
	for _, s := range []Space{Range, Flock} {
		if err := m.TryLock(1, s, Lock{Owner: holder, End: EOF, Type: Exclusive}); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if err := m.TryLockSoon(t.Context(), 1, s, want); !errors.Is(err, ErrWouldBlock) || time.Since(begin) > closingWait/2 {
			t.Errorf("a lock that stays: %v after %v", err, time.Since(begin))
		}

		m.Closing(holder)
		begin = time.Now()
		if err := m.TryLockSoon(t.Context(), 1, s, want); !errors.Is(err, ErrWouldBlock) || time.Since(begin) < closingWait {
			t.Errorf("a copy stays open: %v after %v", err, time.Since(begin))
		}

		go func() {
			time.Sleep(closingWait / 10)
			m.ReleaseOwner(1, s, holder)
			m.Closed(holder)
		}()
		if _, held, err := m.TestSoon(t.Context(), 1, s, want); held || err != nil {
			t.Errorf("test of a lock that is being closed: %v %v", held, err)
		}
		if err := m.TryLockSoon(t.Context(), 1, s, want); err != nil {
			t.Errorf("a lock that was closed: %v", err)
		}
		m.ReleaseOwner(1, s, other)
	}

	// Used again, it stays.
	if err := m.TryLock(1, Flock, Lock{Owner: holder, End: EOF, Type: Exclusive}); err != nil {
		t.Fatal(err)
	}
	m.Closing(holder)
	m.Closed(holder)
	begin := time.Now()
	if err := m.TryLockSoon(t.Context(), 1, Flock, want); !errors.Is(err, ErrWouldBlock) || time.Since(begin) > closingWait/2 {
		t.Errorf("in use again: %v after %v", err, time.Since(begin))
	}
	m.ReleaseOwner(1, Flock, holder)
	if len(m.closing) != 0 || m.Count() != 0 || len(m.files) != 0 {
		t.Errorf("left: %d closing, %d locks, %d files", len(m.closing), m.Count(), len(m.files))
	}
}
