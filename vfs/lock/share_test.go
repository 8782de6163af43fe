package lock

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"
)

func reserved(o Owner, access, deny uint8) Lock { return Lock{Owner: o, Type: Reserve(access, deny)} }

// Whatever owners reserve, convert and give up in turn, they exclude one another as the
// protocol has it: nobody does what another one denies.
func TestSharesAgainstModel(t *testing.T) {
	type mode struct{ access, deny uint8 }
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	owners := []Owner{alice, bob, carol}
	m, held := New(0), map[Owner]mode{}
	for step := range 20000 {
		o, want := owners[r.IntN(3)], mode{uint8(r.IntN(4)), uint8(r.IntN(4))}
		conflict := false
		for other, h := range held {
			conflict = conflict || other != o && (h.deny&want.access != 0 || want.deny&h.access != 0)
		}
		switch l := reserved(o, want.access, want.deny); r.IntN(3) {
		case 0:
			if err := m.Unlock(bg, 7, Share, Lock{Owner: o}); err != nil {
				t.Fatal(err)
			}
			delete(held, o)
		case 1:
			if _, is, err := m.Test(bg, 7, Share, l); is != conflict || err != nil {
				t.Fatalf("step %d: %+v beside %v: %v, %v", step, want, held, is, err)
			}
		default:
			err := m.TryLock(bg, 7, Share, l)
			if conflict != errors.Is(err, ErrWouldBlock) || !conflict && err != nil {
				t.Fatalf("step %d: %+v beside %v: %v", step, want, held, err)
			}
			if err == nil {
				held[o] = want
			}
		}
		list, _, _ := m.List(bg, 10, func(*Entry) bool { return true })
		if len(list) != len(held) || m.Count() != len(held) {
			t.Fatalf("step %d: %+v, counted %d; the model has %v", step, list, m.Count(), held)
		}
		for _, e := range list {
			if got := (mode{e.Lock.Type.Access(), e.Lock.Type.Deny()}); e.Space != Share || got != held[e.Lock.Owner] {
				t.Fatalf("step %d: %+v, the model has %v", step, e, held)
			}
		}
	}
}

// Share reservations wait as other locks do, conflict with none of another space, and end with
// their client; of one that rebooted, those of before.
func TestSharesBesideLocks(t *testing.T) {
	m := New(0)
	mustLock(t, m, 1, Range, rng(bob, Exclusive, 0, EOF))
	mustLock(t, m, 1, Flock, Lock{Owner: bob, Type: Exclusive})
	before, after := reserved(carol, 1, 2), reserved(Owner{"c2", "later"}, 1, 0)
	before.Era, after.Era = 3, 5
	mustLock(t, m, 1, Share, before)
	mustLock(t, m, 1, Share, after)
	got := make(chan error, 1)
	_, waiting, err := m.LockFunc(bg, 1, Share, reserved(alice, 2, 0), func(err error) { got <- err })
	if err != nil || !waiting {
		t.Fatalf("a writer beside who denies that: %v, %v", waiting, err)
	}
	if err := errors.Join(m.Rebooted(bg, "c2", 5), <-got); err != nil {
		t.Fatal(err)
	}
	if n := m.ClientCount("c2"); n != 1 {
		t.Errorf("%d are left of who rebooted", n)
	}
	if err := m.TryLock(bg, 1, Share, reserved(carol, 0, 2)); !errors.Is(err, ErrWouldBlock) {
		t.Errorf("who waited has nothing: %v", err)
	}
	m.ReleaseOwner(1, Share, alice)
	mustLock(t, m, 1, Share, reserved(carol, 0, 2))
	for _, bad := range []Lock{{Owner: alice, Type: 2}, {Owner: alice, Type: 15}, {Owner: alice, Type: 32}} {
		if err := m.TryLock(bg, 1, Share, bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("type %d: %v", bad.Type, err)
		}
	}
	if err := m.TryLock(bg, 1, Range, Lock{Owner: carol, Type: Reserve(1, 0)}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a range of a mode: %v", err)
	}
	m.ReleaseClient("c1")
	m.ReleaseClient("c2")
	if m.Count() != 0 || len(m.files) != 0 {
		t.Errorf("%d locks of %d files are left", m.Count(), len(m.files))
	}
}

func TestSharesInGrace(t *testing.T) {
	m := New(0)
	m.BeginGrace()
	if err := m.TryLock(bg, 1, Share, reserved(alice, 1, 0)); !errors.Is(err, ErrGrace) {
		t.Errorf("a new one: %v", err)
	}
	if err := m.Reclaim(bg, 1, Share, reserved(alice, 1, 2)); err != nil {
		t.Errorf("reclaimed: %v", err)
	}
	if err := m.Reclaim(bg, 1, Share, reserved(bob, 2, 0)); !errors.Is(err, ErrWouldBlock) || errors.Is(err, ErrGrace) {
		t.Errorf("reclaiming what another denies: %v", err)
	}
	m.EndGrace()
	mustLock(t, m, 1, Share, reserved(bob, 1, 0))
}
