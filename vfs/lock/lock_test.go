package lock

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

var bg = context.Background()

var (
	alice = Owner{"c1", "alice"}
	bob   = Owner{"c1", "bob"}
	carol = Owner{"c2", "carol"}
)

func rng(o Owner, t Type, start, end uint64) Lock {
	return Lock{Owner: o, Type: t, Start: start, End: end}
}

func mustLock(t *testing.T, m *Manager, ino uint64, s Space, l Lock) {
	t.Helper()
	if err := m.TryLock(bg, ino, s, l); err != nil {
		t.Fatalf("TryLock(%v): %v", l, err)
	}
}

// waitQueued returns once n requests wait in ino.
func waitQueued(t *testing.T, m *Manager, ino uint64, n int) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for time.Now().Before(deadline) {
		m.mu.Lock()
		f := m.files[ino]
		queued := f != nil && len(f.Waiting) == n
		m.mu.Unlock()
		if queued {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("no %d waiters on %d", n, ino)
}

func TestRangesSplitAndMerge(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(t *testing.T, m *Manager)
		want []Lock
	}{
		{"neighbours merge", func(t *testing.T, m *Manager) {
			mustLock(t, m, 1, Range, rng(alice, Shared, 0, 9))
			mustLock(t, m, 1, Range, rng(alice, Shared, 20, 29))
			mustLock(t, m, 1, Range, rng(alice, Shared, 10, 19))
		}, []Lock{rng(alice, Shared, 0, 29)}},
		{"types do not merge", func(t *testing.T, m *Manager) {
			mustLock(t, m, 1, Range, rng(alice, Shared, 0, 9))
			mustLock(t, m, 1, Range, rng(alice, Exclusive, 10, 19))
		}, []Lock{rng(alice, Shared, 0, 9), rng(alice, Exclusive, 10, 19)}},
		{"unlock splits", func(t *testing.T, m *Manager) {
			mustLock(t, m, 1, Range, rng(alice, Exclusive, 0, EOF))
			if err := m.Unlock(bg, 1, Range, Lock{Owner: alice, Start: 10, End: 19}); err != nil {
				t.Fatal(err)
			}
		}, []Lock{rng(alice, Exclusive, 0, 9), rng(alice, Exclusive, 20, EOF)}},
		{"conversion splits in three", func(t *testing.T, m *Manager) {
			mustLock(t, m, 1, Range, rng(alice, Exclusive, 0, 29))
			mustLock(t, m, 1, Range, rng(alice, Shared, 10, 19))
		}, []Lock{rng(alice, Exclusive, 0, 9), rng(alice, Shared, 10, 19), rng(alice, Exclusive, 20, 29)}},
		{"unlock of nothing", func(t *testing.T, m *Manager) {
			if err := m.Unlock(bg, 1, Range, Lock{Owner: alice, End: EOF}); err != nil {
				t.Fatal(err)
			}
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := New(0)
			c.do(t, m)
			var got []Lock
			if f := m.files[1]; f != nil {
				got = slices.SortedFunc(slices.Values(f.Held[Range]), func(a, b Lock) int { return int(a.Start) - int(b.Start) })
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("held %v, want %v", got, c.want)
			}
			if m.Count() != len(c.want) {
				t.Errorf("Count %d, want %d", m.Count(), len(c.want))
			}
			m.ReleaseOwner(1, Range, alice)
			if m.Count() != 0 || len(m.files) != 0 {
				t.Errorf("%d locks, %d files left", m.Count(), len(m.files))
			}
		})
	}
}

func TestConflicts(t *testing.T) {
	m := New(0)
	mustLock(t, m, 1, Range, rng(alice, Shared, 0, 9))
	mustLock(t, m, 1, Range, rng(bob, Shared, 5, 14))
	if err := m.TryLock(bg, 1, Range, rng(bob, Exclusive, 5, 14)); !errors.Is(err, ErrWouldBlock) {
		t.Errorf("upgrade over a reader: %v", err)
	}
	h, held, err := m.Test(bg, 1, Range, rng(carol, Exclusive, 0, EOF))
	if err != nil || !held || h != rng(alice, Shared, 0, 9) {
		t.Errorf("Test = %v %v %v, want the lowest", h, held, err)
	}
	if _, held, _ := m.Test(bg, 1, Range, rng(carol, Shared, 0, EOF)); held {
		t.Error("readers conflict")
	}
	if _, held, _ := m.Test(bg, 2, Range, rng(carol, Exclusive, 0, EOF)); held {
		t.Error("another file conflicts")
	}
	mustLock(t, m, 1, Flock, Lock{Owner: carol, Type: Exclusive}) // spaces are apart
	for _, bad := range []Lock{rng(alice, Shared, 5, 4), rng(alice, 7, 0, 1), rng(alice, Shared, 0, EOF+1)} {
		if err := m.TryLock(bg, 1, Range, bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

func TestWaiting(t *testing.T) {
	m := New(0)
	mustLock(t, m, 1, Range, rng(alice, Exclusive, 0, 9))
	got := make(chan error, 1)
	go func() { got <- m.Lock(context.Background(), 1, Range, rng(bob, Exclusive, 9, 12)) }()
	waitQueued(t, m, 1, 1)
	m.Unlock(bg, 1, Range, Lock{Owner: alice, End: 8}) // not what bob waits for
	waitQueued(t, m, 1, 1)
	m.Unlock(bg, 1, Range, Lock{Owner: alice, Start: 9, End: 9})
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	if _, held, _ := m.Test(bg, 1, Range, rng(alice, Shared, 12, 12)); !held {
		t.Error("granted lock is not held")
	}
}

func TestCancel(t *testing.T) {
	m := New(0)
	mustLock(t, m, 1, Flock, Lock{Owner: alice, Type: Exclusive})
	ctx, cancel := context.WithCancel(context.Background())
	got := make(chan error, 1)
	go func() { got <- m.Lock(ctx, 1, Flock, Lock{Owner: bob, Type: Shared}) }()
	waitQueued(t, m, 1, 1)
	cancel()
	if err := <-got; !errors.Is(err, ErrInterrupted) {
		t.Fatal(err)
	}
	m.ReleaseOwner(1, Flock, alice)
	if m.Count() != 0 || len(m.waiting) != 0 || len(m.files) != 0 {
		t.Errorf("left: %d locks, %d owners, %d files", m.Count(), len(m.waiting), len(m.files))
	}
}

func TestDeadlock(t *testing.T) {
	m := New(0)
	// alice holds 1, bob 2, carol 3; each waits for the next.
	for i, o := range []Owner{alice, bob, carol} {
		mustLock(t, m, uint64(i+1), Range, rng(o, Exclusive, 0, 0))
	}
	got := make(chan error, 2)
	go func() { got <- m.Lock(context.Background(), 2, Range, rng(alice, Exclusive, 0, 0)) }()
	waitQueued(t, m, 2, 1)
	go func() { got <- m.Lock(context.Background(), 3, Range, rng(bob, Exclusive, 0, 0)) }()
	waitQueued(t, m, 3, 1)
	if err := m.Lock(context.Background(), 1, Range, rng(carol, Shared, 0, 0)); !errors.Is(err, ErrDeadlock) {
		t.Fatalf("cycle of three: %v", err)
	}
	m.ReleaseOwner(3, Range, carol)
	m.ReleaseOwner(2, Range, bob)
	for range 2 {
		if err := <-got; err != nil {
			t.Error(err)
		}
	}
}

// A cycle can also come to be when somebody is granted what others wait for.
func TestDeadlockAfterGrant(t *testing.T) {
	m := New(0)
	mustLock(t, m, 1, Range, rng(alice, Exclusive, 0, 0))
	mustLock(t, m, 2, Range, rng(bob, Exclusive, 0, 0))
	carolGot, bobGot := make(chan error, 1), make(chan error, 1)
	go func() { carolGot <- m.Lock(context.Background(), 1, Range, rng(carol, Exclusive, 0, 0)) }()
	waitQueued(t, m, 1, 1)
	go func() { bobGot <- m.Lock(context.Background(), 1, Range, rng(bob, Exclusive, 0, 0)) }()
	waitQueued(t, m, 1, 2)
	go m.Lock(context.Background(), 2, Range, rng(carol, Exclusive, 0, 0))
	waitQueued(t, m, 2, 1)
	// carol gets 1, and waits for bob's 2; bob still waits for 1.
	m.ReleaseOwner(1, Range, alice)
	if err := <-carolGot; err != nil {
		t.Error(err)
	}
	if err := <-bobGot; !errors.Is(err, ErrDeadlock) {
		t.Errorf("bob: %v", err)
	}
	m.ReleaseOwner(2, Range, bob)
}

func TestFlockConversion(t *testing.T) {
	m := New(0)
	mustLock(t, m, 1, Flock, Lock{Owner: alice, Type: Shared})
	mustLock(t, m, 1, Flock, Lock{Owner: bob, Type: Shared})
	// Both upgrade: the first to ask loses its shared lock, so the other goes on.
	got := make(chan error, 1)
	go func() { got <- m.Lock(context.Background(), 1, Flock, Lock{Owner: alice, Type: Exclusive}) }()
	waitQueued(t, m, 1, 1)
	mustLock(t, m, 1, Flock, Lock{Owner: bob, Type: Exclusive})
	m.ReleaseOwner(1, Flock, bob)
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	if err := m.TryLock(bg, 1, Flock, Lock{Owner: bob, Type: Shared}); !errors.Is(err, ErrWouldBlock) {
		t.Error(err)
	}
}

func TestDowngradeLetsReadersIn(t *testing.T) {
	m := New(0)
	mustLock(t, m, 1, Range, rng(alice, Exclusive, 0, 9))
	granted := make(chan error, 1)
	_, waiting, err := m.LockFunc(bg, 1, Range, rng(bob, Shared, 0, 9), func(err error) { granted <- err })
	if err != nil || !waiting {
		t.Fatal(waiting, err)
	}
	mustLock(t, m, 1, Range, rng(alice, Shared, 0, 9))
	select {
	case err := <-granted:
		if err != nil {
			t.Fatal(err)
		}
	default:
		t.Fatal("the callback runs before TryLock returns")
	}
}

func TestReleaseClient(t *testing.T) {
	m := New(0)
	mustLock(t, m, 1, Range, rng(alice, Exclusive, 0, 9))
	mustLock(t, m, 2, Flock, Lock{Owner: bob, Type: Exclusive})
	mustLock(t, m, 3, Range, rng(carol, Exclusive, 0, 9))
	bobGot, carolGot := make(chan error, 1), make(chan error, 1)
	if _, w, err := m.LockFunc(bg, 3, Range, rng(bob, Shared, 0, 0), func(err error) { bobGot <- err }); err != nil || !w {
		t.Fatal(w, err)
	}
	if _, w, err := m.LockFunc(bg, 1, Range, rng(carol, Shared, 0, 0), func(err error) { carolGot <- err }); err != nil || !w {
		t.Fatal(w, err)
	}
	m.ReleaseClient("c1")
	if err := <-bobGot; !errors.Is(err, ErrInterrupted) {
		t.Error(err)
	}
	if err := <-carolGot; err != nil {
		t.Error(err)
	}
	m.ReleaseClient("c2")
	if m.Count() != 0 || len(m.files) != 0 {
		t.Errorf("left: %d locks, %d files", m.Count(), len(m.files))
	}
}

func TestBound(t *testing.T) {
	m := New(8)
	for i := range uint64(7) {
		if err := m.TryLock(bg, 1, Range, rng(alice, Shared, i*10, i*10+4)); err != nil {
			t.Fatal(i, err)
		}
	}
	if err := m.TryLock(bg, 1, Range, rng(bob, Shared, 0, 0)); !errors.Is(err, ErrNoLocks) {
		t.Errorf("over the bound: %v", err)
	}
	if err := m.Unlock(bg, 1, Range, Lock{Owner: alice, Start: 2, End: 2}); err != nil { // the eighth
		t.Error(err)
	}
	if err := m.Unlock(bg, 1, Range, Lock{Owner: alice, Start: 12, End: 12}); !errors.Is(err, ErrNoLocks) {
		t.Errorf("splitting over the bound: %v", err)
	}
	if err := m.Unlock(bg, 1, Range, Lock{Owner: alice, End: EOF}); err != nil || m.Count() != 0 {
		t.Error(err, m.Count())
	}
}

// A machine that came back loses what it locked before, and nothing of after.
func TestRebooted(t *testing.T) {
	m := New(0)
	old, now := rng(alice, Shared, 0, 9), rng(alice, Shared, 10, 19)
	old.Era, now.Era = 3, 5
	mustLock(t, m, 1, Range, old)
	mustLock(t, m, 1, Range, now)
	if n := m.Count(); n != 2 {
		t.Errorf("%d ranges: of two eras they are not one", n)
	}
	wait := func(l Lock, era uint32) chan error {
		got := make(chan error, 1)
		l.Era = era
		if _, waiting, err := m.LockFunc(t.Context(), 1, Range, l, func(err error) { got <- err }); err != nil || !waiting {
			t.Fatal(err)
		}
		return got
	}
	mustLock(t, m, 1, Range, rng(bob, Shared, 0, 30))
	before, after := wait(rng(alice, Exclusive, 30, 30), 3), wait(rng(alice, Exclusive, 30, 30), 5)
	if err := m.Rebooted(t.Context(), alice.Client, 5); err != nil {
		t.Fatal(err)
	}
	if err := <-before; !errors.Is(err, ErrInterrupted) {
		t.Errorf("what waited of before: %v", err)
	}
	m.ReleaseOwner(1, Range, bob)
	if err := <-after; err != nil {
		t.Errorf("what waits of after: %v", err)
	}
	if f := m.files[1]; len(f.Held[Range]) != 2 || f.Held[Range][0].Era != 5 || f.Held[Range][1].Era != 5 {
		t.Errorf("%+v", f.Held[Range])
	}
	if m.ReleaseClient(alice.Client); m.Count() != 0 {
		t.Errorf("%d are left", m.Count())
	}
}

// Where a request of a remote client is cancelled that was granted, the client has what it
// held before, but nothing that it gave up since.
func TestCancelUndoesGrant(t *testing.T) {
	remote := Owner{RemotePrefix + "1.2.3.4 client", "owner"}
	for _, c := range []struct {
		name      string
		had       []Lock // by remote; bob has 0 to 9 shared, until it was made
		asks      Lock
		meanwhile func(t *testing.T, m *Manager) // after the grant
		want      []Lock
	}{
		{"nothing", nil, rng(remote, Exclusive, 0, 9), nil, nil},
		{"all, shared", []Lock{rng(remote, Shared, 0, 9)}, rng(remote, Exclusive, 0, 9), nil, []Lock{rng(remote, Shared, 0, 9)}},
		{"a part", []Lock{rng(remote, Shared, 4, 5)}, rng(remote, Exclusive, 0, 9), nil, []Lock{rng(remote, Shared, 4, 5)}},
		{"more", []Lock{rng(remote, Shared, 0, 99)}, rng(remote, Exclusive, 5, 9), nil, []Lock{rng(remote, Shared, 0, 99)}},
		{"a neighbour", []Lock{rng(remote, Exclusive, 20, 29)}, rng(remote, Exclusive, 0, 19), nil, []Lock{rng(remote, Exclusive, 20, 29)}},
		{"given up since", []Lock{rng(remote, Shared, 0, 9)}, rng(remote, Exclusive, 0, 9), func(t *testing.T, m *Manager) {
			if err := m.Unlock(bg, 1, Range, Lock{Owner: remote, Start: 0, End: 3}); err != nil {
				t.Error(err)
			}
		}, []Lock{rng(remote, Shared, 4, 9)}},
		{"stronger", []Lock{rng(remote, Exclusive, 200, 209)}, rng(remote, Shared, 200, 219), nil, []Lock{rng(remote, Shared, 200, 209)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := New(0)
			for _, l := range c.had {
				mustLock(t, m, 1, Range, l)
			}
			mustLock(t, m, 1, Range, rng(bob, Shared, 0, 9))
			ended := make(chan error, 1)
			cancel, _, err := m.LockFunc(bg, 1, Range, c.asks, func(err error) { ended <- err })
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Unlock(bg, 1, Range, Lock{Owner: bob, Start: 0, End: EOF}); err != nil {
				t.Fatal(err)
			}
			if c.meanwhile != nil {
				c.meanwhile(t, m)
			}
			for range 2 {
				if cancel() {
					t.Error("it waited")
				}
			}
			var got []Lock
			if f := m.files[1]; f != nil {
				got = f.Of(Range, remote.Client)
			}
			slices.SortFunc(got, func(a, b Lock) int { return int(a.Start) - int(b.Start) })
			if !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
			if m.Count() != len(got) {
				t.Errorf("%d are counted, of %d", m.Count(), len(got))
			}
		})
	}
}

// A request that ended without a grant takes nothing from its owner when it is cancelled.
func TestCancelOfDeadlock(t *testing.T) {
	remote := Owner{RemotePrefix + "1.2.3.4 client", "owner"}
	m := New(0)
	mustLock(t, m, 1, Range, rng(alice, Exclusive, 0, 0))
	mustLock(t, m, 1, Range, rng(remote, Shared, 5, 9))
	mustLock(t, m, 2, Range, rng(remote, Exclusive, 0, 0))
	wait := func(ino uint64, l Lock) (cancel func() bool, ended chan error) {
		ended = make(chan error, 1)
		cancel, waiting, err := m.LockFunc(bg, ino, Range, l, func(err error) { ended <- err })
		if err != nil || !waiting {
			t.Fatal(waiting, err)
		}
		return cancel, ended
	}
	wait(1, rng(carol, Exclusive, 0, 0))
	cancel, ended := wait(1, rng(remote, Exclusive, 0, 9))
	wait(2, rng(carol, Exclusive, 0, 0))
	// carol gets 1, and waits for 2 of remote, who still waits for 1.
	m.ReleaseOwner(1, Range, alice)
	if err := <-ended; !errors.Is(err, ErrDeadlock) {
		t.Error(err)
	}
	if cancel() {
		t.Error("it waited")
	}
	if had := rng(remote, Shared, 5, 9); !m.files[1].Holds(Range, &had) {
		t.Error("it lost what it had")
	}
}
