package lock

import (
	"errors"
	"testing"
)

func TestGrace(t *testing.T) {
	m := New(0)
	m.BeginGrace()
	m.BeginGrace()
	if err := m.TryLock(bg, 1, Range, rng(alice, Exclusive, 0, 9)); !errors.Is(err, ErrGrace) || !errors.Is(err, ErrWouldBlock) {
		t.Errorf("a new lock: %v", err)
	}
	mustLock(t, m, 1, Flock, Lock{Owner: alice, Type: Exclusive})
	granted := make(chan string, 2)
	for _, o := range []Owner{alice, carol} {
		_, waiting, err := m.LockFunc(bg, 1, Range, rng(o, Exclusive, 0, 9), func(err error) {
			if err != nil {
				t.Error(err)
			}
			granted <- o.ID
		})
		if err != nil || !waiting {
			t.Fatal(waiting, err)
		}
	}
	if err := m.Reclaim(bg, 1, Range, rng(bob, Exclusive, 5, 9)); err != nil {
		t.Errorf("reclaiming: %v", err)
	}
	if err := m.Reclaim(bg, 1, Range, rng(carol, Shared, 9, 9)); !errors.Is(err, ErrWouldBlock) || errors.Is(err, ErrGrace) {
		t.Errorf("reclaiming what another reclaimed: %v", err)
	}
	if err := m.Unlock(bg, 1, Range, Lock{Owner: bob, Start: 5, End: 5}); err != nil { // grants nothing yet
		t.Fatal(err)
	}
	m.EndGrace()
	if !m.InGrace() {
		t.Error("one of two graces ended both")
	}
	m.EndGrace()
	if len(granted) != 0 {
		t.Error("granted what conflicts with a reclaimed lock")
	}
	m.ReleaseOwner(1, Range, bob)
	if len(granted) != 1 || <-granted != "alice" {
		t.Error("the first who waited is not the first to get it")
	}
	m.ReleaseClient(alice.Client)
	if len(granted) != 1 {
		t.Error("the second does not get it")
	}
	if got := m.ClientCount(carol.Client); got != 1 || m.ClientCount(alice.Client) != 0 {
		t.Errorf("counts: %d of carol's, %d of alice's", got, m.ClientCount(alice.Client))
	}
}

func TestGraceGrantsAtItsEnd(t *testing.T) {
	m := New(0)
	m.BeginGrace()
	granted := false
	cancel, waiting, err := m.LockFunc(bg, 1, Range, rng(alice, Shared, 0, EOF), func(error) { granted = true })
	if err != nil || !waiting {
		t.Fatal(waiting, err)
	}
	m.EndGrace()
	if !granted || cancel() {
		t.Error("not granted at the end of the grace period")
	}
}

func TestClientBound(t *testing.T) {
	m := New(0)
	m.tally.maxClient = 4
	for i := range uint64(3) {
		mustLock(t, m, i, Range, rng(alice, Shared, 0, 9))
	}
	if err := m.TryLock(bg, 9, Range, rng(bob, Shared, 0, 9)); !errors.Is(err, ErrNoLocks) {
		t.Errorf("bob is of the same client: %v", err)
	}
	mustLock(t, m, 9, Range, rng(carol, Exclusive, 0, 9))
	if err := m.Unlock(bg, 1, Range, Lock{Owner: alice, Start: 5, End: 5}); err != nil {
		t.Errorf("the fourth: %v", err)
	}
	if err := m.Unlock(bg, 2, Range, Lock{Owner: alice, Start: 5, End: 5}); !errors.Is(err, ErrNoLocks) {
		t.Errorf("the fifth: %v", err)
	}
	m.ReleaseClient("c1")
	m.ReleaseClient("c2")
	if len(m.tally.clients) != 0 || m.Count() != 0 {
		t.Errorf("left: %v, %d", m.tally.clients, m.Count())
	}
}
