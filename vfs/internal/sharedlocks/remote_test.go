package sharedlocks

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/record"
	"ogw/vfs/lock"
)

// remote is a process of a client that is another machine.
func remote(machine, process string) lock.Owner {
	return lock.Owner{Client: lock.RemotePrefix + machine + " here host", ID: process}
}

// remotes returns what the store says that a machine has.
func (g *gateway) remotes(machine string) (n int) {
	list, err := g.RemoteClients(bg, lock.RemotePrefix+machine+" ")
	must(g.s.t, err)
	for _, x := range list {
		n += x.Locks
	}
	return n
}

// What a remote client locks through one gateway it unlocks through another, it outlives
// both, and nobody else gives it up.
func TestRemoteAnyGateway(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b := s.open(), s.open()
		l := exclusive(remote("10.0.0.1", "1"))
		must(t, a.TryLock(bg, 1, lock.Range, l))
		other, mount := exclusive(remote("10.0.0.2", "1")), exclusive(owner(b, "1"))
		wantErr(t, b.TryLock(bg, 1, lock.Range, other), lock.ErrWouldBlock)
		wantErr(t, b.TryLock(bg, 1, lock.Range, mount), lock.ErrWouldBlock)
		wantErr(t, a.TryLock(bg, 1, lock.Range, other), lock.ErrWouldBlock)
		must(t, b.TryLock(bg, 1, lock.Range, l)) // asked again
		must(t, b.Unlock(bg, 1, lock.Range, lock.Lock{Owner: other.Owner, End: lock.EOF}))
		must(t, b.Rebooted(bg, other.Owner.Client, 0))
		wantErr(t, b.TryLock(bg, 1, lock.Range, other), lock.ErrWouldBlock)
		if n := b.remotes("10.0.0.1"); n != 1 || b.remotes("10.0.0.2") != 0 || b.remotes("10.0.0") != 0 {
			t.Errorf("%d locks of the first", n)
		}
		a.end()
		c := s.open()
		wantErr(t, c.TryLock(bg, 1, lock.Range, mount), lock.ErrWouldBlock)
		must(t, c.Sweep(bg))
		if _, held, err := c.Test(bg, 1, lock.Range, other); err != nil || !held {
			t.Fatalf("after the end of its gateway: %v, %v", held, err)
		}
		must(t, c.Unlock(bg, 1, lock.Range, lock.Lock{Owner: l.Owner, Start: 10, End: 19}))
		if n := c.remotes("10.0.0.1"); n != 2 {
			t.Errorf("%d locks of the first, of which one was split", n)
		}
		must(t, b.TryLock(bg, 1, lock.Range, lock.Lock{Owner: mount.Owner, Type: lock.Exclusive, Start: 10, End: 19}))
		b.ReleaseClient(mount.Owner.Client)
		must(t, c.Unlock(bg, 1, lock.Range, lock.Lock{Owner: l.Owner, End: lock.EOF}))
		must(t, b.TryLock(bg, 1, lock.Range, mount))
		b.ReleaseClient(mount.Owner.Client)
		s.empty(b, c)
	})
}

// What waits for a remote client is of the gateway that is to call back: it goes with that,
// and what it was granted stays.
func TestRemoteWaits(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b := s.open(), s.open()
		one, two := exclusive(remote("10.0.0.1", "1")), exclusive(remote("10.0.0.2", "1"))
		must(t, a.TryLock(bg, 1, lock.Range, one))
		got, _ := waits(t, a, 1, lock.Range, two)
		nothing(t, got)
		must(t, b.Unlock(bg, 1, lock.Range, lock.Lock{Owner: one.Owner, End: lock.EOF}))
		must(t, <-got)
		wantErr(t, b.TryLock(bg, 1, lock.Range, one), lock.ErrWouldBlock)
		lost, _ := waits(t, a, 1, lock.Range, one)
		a.end()
		wantErr(t, b.TryLock(bg, 1, lock.Range, one), lock.ErrWouldBlock)
		again, _ := waits(t, b, 1, lock.Range, one)
		must(t, b.Unlock(bg, 1, lock.Range, lock.Lock{Owner: two.Owner, End: lock.EOF}))
		must(t, <-again)
		if len(lost) != 0 {
			t.Errorf("one that is gone learned %v", <-lost)
		}
		must(t, b.Rebooted(bg, one.Owner.Client, 0))
		s.empty(b)
	})
}

// A client that asks another gateway for what it waits for waits there, and not twice; the
// first one does not believe that it was granted. Other requests of the same process wait on.
func TestRemoteAsksElsewhere(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b := s.open(), s.open()
		m := exclusive(owner(a, "1"))
		must(t, a.TryLock(bg, 1, lock.Range, m))
		o := remote("10.0.0.1", "1")
		l, thread := exclusive(o), lock.Lock{Owner: o, Start: 5, End: 6}
		first, _ := waits(t, a, 1, lock.Range, l)
		stays, _ := waits(t, a, 1, lock.Range, thread)
		second, cancel := waits(t, b, 1, lock.Range, l)
		wantErr(t, <-first, lock.ErrInterrupted)
		nothing(t, stays)
		nothing(t, second)
		if n := a.remotes("10.0.0.1"); n != 2 {
			t.Errorf("%d requests", n)
		}
		if !cancel() || cancel() {
			t.Error("cancelled: once")
		}
		third, _ := waits(t, b, 1, lock.Range, l)
		for _, g := range []*gateway{a, b} {
			if found, err := g.Withdraw(bg, 1, lock.Range, lock.Lock{Owner: o, Start: 5, End: 7}); err != nil || found {
				t.Error("another range is withdrawn")
			}
		}
		if found, err := a.Withdraw(bg, 1, lock.Range, l); err != nil || !found {
			t.Errorf("%v, %v", found, err)
		}
		wantErr(t, <-third, lock.ErrInterrupted)
		fourth, _ := waits(t, a, 1, lock.Range, l)
		must(t, b.Unlock(bg, 1, lock.Range, lock.Lock{Owner: o, End: lock.EOF})) // as one whose process died
		wantErr(t, <-fourth, lock.ErrInterrupted)
		a.ReleaseClient(m.Owner.Client)
		must(t, <-stays)
		must(t, b.Unlock(bg, 1, lock.Range, thread))
		s.empty(a, b)
	})
}

// What was granted to one that waited, and its client did not take, is given up, unless the
// client has asked for anything since, whichever gateway.
func TestRemoteNotTaken(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b := s.open(), s.open()
		l, m := exclusive(remote("10.0.0.1", "1")), exclusive(owner(b, "1"))
		for _, since := range []func(){
			nil,
			func() { must(t, b.TryLock(bg, 1, lock.Range, l)) },
			func() { must(t, b.Unlock(bg, 1, lock.Range, lock.Lock{Owner: l.Owner, Start: 100, End: 199})) },
		} {
			for _, away := range []bool{false, true} {
				must(t, b.TryLock(bg, 1, lock.Range, m))
				got, cancel := waits(t, a, 1, lock.Range, l)
				b.ReleaseClient(m.Owner.Client)
				must(t, <-got)
				if since != nil {
					since()
				}
				a.away.Store(away)
				cancel()
				a.away.Store(false)
				a.settleDoubts()
				time.Sleep(2 * time.Second)
				if n := b.remotes("10.0.0.1"); (n == 0) != (since == nil) {
					t.Errorf("away: %v, %d are left", away, n)
				}
				must(t, b.Unlock(bg, 1, lock.Range, lock.Lock{Owner: l.Owner, End: lock.EOF}))
			}
		}
		s.empty(a, b)
	})
}

// What several requests of one process were granted, by one release or by one after the other, is given
// up with each that the client does not take, in any order, and no other; where they overlap, with the
// last one.
func TestRemoteNotTakenTwo(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b := s.open(), s.open()
		p, m := remote("10.0.0.1", "1"), owner(b, "1")
		unlock := func(start, end uint64) {
			must(t, b.Unlock(bg, 1, lock.Range, lock.Lock{Owner: m, Start: start, End: end}))
		}
		held := func() (list []lock.Lock) {
			entries, _, err := b.List(bg, 10, func(*lock.Entry) bool { return true })
			must(t, err)
			for i := range entries {
				list = append(list, entries[i].Lock)
			}
			return list
		}
		for name, c := range map[string]struct {
			second, of lock.Lock // of: what of it is left when the first is cancelled
			since      func()
			left       []lock.Lock
		}{
			"apart":   {second: rng(p, 20, 29), of: rng(p, 20, 29)},
			"beside":  {second: rng(p, 10, 29), of: rng(p, 10, 29)},
			"overlap": {second: rng(p, 5, 29), of: rng(p, 5, 29)},
			"asks for another": {second: rng(p, 20, 29), of: rng(p, 20, 29),
				since: func() { must(t, b.TryLock(bg, 1, lock.Range, rng(p, 50, 59))) }, left: []lock.Lock{rng(p, 50, 59)}},
		} {
			for _, first := range []bool{true, false} {
				for _, how := range []string{"one release", "two", "away"} {
					must(t, b.TryLock(bg, 1, lock.Range, exclusive(m)))
					got1, cancel1 := waits(t, a, 1, lock.Range, rng(p, 0, 9))
					got2, cancel2 := waits(t, a, 1, lock.Range, c.second)
					if how == "two" {
						unlock(0, 9)
					}
					unlock(0, lock.EOF)
					must(t, errors.Join(<-got1, <-got2))
					if c.since != nil {
						c.since()
					}
					if !first {
						cancel1, cancel2 = cancel2, cancel1
					}
					a.away.Store(how == "away")
					cancel1()
					if first && how != "away" {
						if got, want := held(), append([]lock.Lock{c.of}, c.left...); !slices.Equal(got, want) {
							t.Errorf("%s, %s: after the first %+v, want %+v", name, how, got, want)
						}
					}
					cancel2()
					a.away.Store(false)
					a.settleDoubts()
					time.Sleep(2 * time.Second)
					if got := held(); !slices.Equal(got, c.left) {
						t.Errorf("%s, the first first: %v, %s: %+v are left", name, first, how, got)
					}
					must(t, b.Unlock(bg, 1, lock.Range, lock.Lock{Owner: p, End: lock.EOF}))
				}
			}
		}
		s.empty(a, b)
	})
}

// What a request that may wait was granted at once, and its client does not want any more, is
// given up as what was granted later: no more than that, and not if the client asked since.
func TestRemoteGrantedAtOnce(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b := s.open(), s.open()
		p := remote("10.0.0.1", "1")
		l := rng(p, 10, 19)
		all := lock.Lock{Owner: p, End: lock.EOF}
		for name, c := range map[string]struct {
			before, since func()
			left          []lock.Lock
		}{
			"alone":       {},
			"beside it":   {before: func() { must(t, b.TryLock(bg, 1, lock.Range, rng(p, 20, 29))) }, left: []lock.Lock{rng(p, 20, 29)}},
			"more of it":  {before: func() { must(t, b.TryLock(bg, 1, lock.Range, rng(p, 0, 10))) }, left: []lock.Lock{rng(p, 0, 19)}},
			"asked since": {since: func() { must(t, b.TryLock(bg, 1, lock.Range, l)) }, left: []lock.Lock{l}},
			"another asks": {since: func() {
				wantErr(t, b.TryLock(bg, 1, lock.Range, exclusive(remote("10.0.0.2", "1"))), lock.ErrWouldBlock)
			}},
			"unlocked since, locked by another": {since: func() {
				must(t, b.Unlock(bg, 1, lock.Range, all))
				must(t, b.TryLock(bg, 1, lock.Range, rng(owner(b, "1"), 10, 19)))
			}, left: []lock.Lock{rng(owner(b, "1"), 10, 19)}},
		} {
			for _, away := range []string{"", "cannot be cancelled", "without an answer"} {
				if c.before != nil {
					c.before()
				}
				if away == "without an answer" {
					a.lost.Store(1)
				}
				cancel, waiting, err := a.LockFunc(bg, 1, lock.Range, l, func(error) { t.Error("it waited") })
				if a.lost.Load() != 0 || waiting || (err != nil) != (away == "without an answer") {
					t.Fatalf("%s: %v, %v", name, waiting, err)
				}
				if c.since != nil {
					c.since()
				}
				a.away.Store(away == "cannot be cancelled")
				if err == nil {
					cancel()
				}
				time.Sleep(2 * time.Second)
				a.away.Store(false)
				a.settleDoubts()
				time.Sleep(2 * time.Second)
				list, _, err := b.List(bg, 10, func(*lock.Entry) bool { return true })
				must(t, err)
				held := make([]lock.Lock, len(list))
				for i := range list {
					held[i] = list[i].Lock
				}
				if !slices.Equal(held, c.left) {
					t.Errorf("%s, %s: %+v are left", name, away, held)
				}
				must(t, b.Unlock(bg, 1, lock.Range, all))
				b.ReleaseClient(owner(b, "1").Client)
			}
		}
		s.empty(a, b)
	})
}

// The notice of a reboot, at any gateway, ends what was locked and waits of before.
func TestRemoteReboots(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b := s.open(), s.open()
		o := remote("10.0.0.1", "1")
		era := func(e uint32, start uint64) lock.Lock {
			return lock.Lock{Owner: o, Type: lock.Exclusive, Start: start, End: start + 9, Era: e}
		}
		for ino := range uint64(5) {
			must(t, a.TryLock(bg, ino, lock.Range, era(3, 0)))
			must(t, b.TryLock(bg, ino, lock.Range, era(5, 10)))
		}
		must(t, b.TryLock(bg, 9, lock.Range, exclusive(owner(b, "1"))))
		before, _ := waits(t, a, 9, lock.Range, era(3, 0))
		after, _ := waits(t, a, 9, lock.Range, era(5, 20))
		var crowd []chan error
		for i := range uint64(2 * maxMoved) {
			l := era(3, 100+10*i)
			l.Owner.ID = fmt.Sprint(i)
			c, _ := waits(t, a, 9, lock.Range, l)
			crowd = append(crowd, c)
		}
		must(t, b.Rebooted(bg, o.Client, 5))
		wantErr(t, <-before, lock.ErrInterrupted)
		for _, c := range crowd {
			wantErr(t, <-c, lock.ErrInterrupted)
		}
		nothing(t, after)
		if n := a.remotes("10.0.0.1"); n != 6 {
			t.Errorf("%d of after", n)
		}
		b.ReleaseClient(owner(b, "1").Client)
		must(t, <-after)
		must(t, a.Rebooted(bg, o.Client, 0))
		s.empty(a, b)
	})
}

// What is not known to be unlocked is not said to be: the client asks again, and nothing
// comes late that would end what it locks since.
func TestRemoteOutage(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b := s.open(), s.open()
		l := exclusive(remote("10.0.0.1", "1"))
		whole := lock.Lock{Owner: l.Owner, End: lock.EOF}
		must(t, a.TryLock(bg, 1, lock.Range, l))
		a.away.Store(true)
		wantErr(t, a.Unlock(bg, 1, lock.Range, whole), cluster.ErrUnavailable)
		wantErr(t, a.Rebooted(bg, l.Owner.Client, 0), cluster.ErrUnavailable)
		a.away.Store(false)
		must(t, b.Unlock(bg, 1, lock.Range, whole))
		must(t, b.TryLock(bg, 1, lock.Range, l))
		a.settleDoubts()
		time.Sleep(2 * time.Second)
		if n := b.remotes("10.0.0.1"); n != 1 {
			t.Fatalf("%d locks: what was asked for before is done after", n)
		}
		must(t, b.Unlock(bg, 1, lock.Range, whole))

		// Nobody is told that it was locked; it may still come to be.
		a.lost.Store(1)
		wantErr(t, a.TryLock(bg, 1, lock.Range, l), cluster.ErrUnavailable)
		wantErr(t, a.Unlock(bg, 1, lock.Range, whole), cluster.ErrUnavailable)
		a.settleDoubts()
		must(t, a.Unlock(bg, 1, lock.Range, whole))
		s.empty(a, b)
	})
}

// A gateway of the version before grants what waits as of the gateway that had it wait: that
// makes it the client's.
func TestRemoteGrantedByOlder(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b := s.open(), s.open()
		l, m := exclusive(remote("10.0.0.1", "1")), exclusive(owner(b, "1"))
		must(t, b.TryLock(bg, 1, lock.Range, m))
		got, _ := waits(t, a, 1, lock.Range, l)
		must(t, s.c.KV.Update(bg, func(x cluster.Txn) error {
			v, err := x.Get(record.LockKey(1))
			if err != nil {
				return err
			}
			f, err := record.DecodeFileLocks(v)
			if err != nil {
				return err
			}
			ticket := f.Waiting[0].Ticket
			f.Held[lock.Range], f.Waiting = []lock.Lock{l}, nil
			f.Holders = map[lock.Owner]record.LockHolder{l.Owner: {Gateway: f.Waits[ticket]}}
			return errors.Join(x.Set(record.LockKey(1), f.Encode()), x.Delete(record.WaitKey(l.Owner)))
		}))
		must(t, <-got)
		time.Sleep(time.Second)
		must(t, s.c.KV.View(bg, func(r cluster.Reader) error {
			v, _ := r.Get(record.LockKey(1))
			f, err := record.DecodeFileLocks(v)
			if h := f.Holders[l.Owner]; h.Gateway != 0 {
				t.Errorf("%+v", h)
			}
			return err
		}))
		a.end()
		wantErr(t, b.TryLock(bg, 1, lock.Range, m), lock.ErrWouldBlock)
		must(t, b.Unlock(bg, 1, lock.Range, lock.Lock{Owner: l.Owner, End: lock.EOF}))
		s.empty(b)
	})
}

// A machine's part is of what the store has, whichever gateway granted it, and whoever asks
// for it there: also after a restart.
func TestRemoteBounds(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		const most = 16
		open := func() *gateway {
			g := s.open()
			g.machines.tally, g.machines.after = lock.NewTally(most), 1
			return g
		}
		a, b := open(), open()
		lockAt := func(g *gateway, name string, i uint64) error {
			o := remote("10.0.0.1", "1")
			o.Client += name
			return g.TryLock(bg, i, lock.Range, exclusive(o))
		}
		for i := range uint64(most - 1) {
			must(t, lockAt([]*gateway{a, b}[i%2], "", i))
		}
		time.Sleep(learnEvery)
		c := open()
		for _, g := range []*gateway{b, c} {
			wantErr(t, lockAt(g, "another name", 100), lock.ErrNoLocks)
		}
		if err := c.Unlock(bg, 0, lock.Range, lock.Lock{Owner: remote("10.0.0.1", "1"), Start: 5, End: 6}); !errors.Is(err, lock.ErrNoLocks) {
			t.Errorf("an unlock that would make one more: %v", err)
		}
		must(t, b.Rebooted(bg, remote("10.0.0.1", "").Client, 0))
		time.Sleep(learnEvery)
		for _, g := range []*gateway{a, b, c} {
			must(t, lockAt(g, "another name", 100+g.id))
			must(t, g.Unlock(bg, 100+g.id, lock.Range, exclusive(lock.Owner{Client: remote("10.0.0.1", "").Client + "another name", ID: "1"})))
			if g.SetAccount(remote("10.0.0.1", "").Client, ""); g.machines.tally.Total() != 0 || len(g.machines.known) != 0 {
				t.Errorf("%d, %d machines", g.machines.tally.Total(), len(g.machines.known))
			}
		}
		s.empty(a, b, c)
	})
}

// A lock without conflict is one transaction, and so is its end.
func TestRemoteRounds(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a := s.open()
		l := exclusive(remote("10.0.0.1", "1"))
		must(t, a.TryLock(bg, 1, lock.Range, l))
		counted := &rounds{KV: a.cfg.KV}
		a.cfg.KV = counted
		must(t, a.TryLock(bg, 2, lock.Range, l))
		must(t, a.Unlock(bg, 2, lock.Range, lock.Lock{Owner: l.Owner, End: lock.EOF}))
		if counted.n != 2 {
			t.Errorf("%d transactions", counted.n)
		}
		must(t, a.Unlock(bg, 1, lock.Range, lock.Lock{Owner: l.Owner, End: lock.EOF}))
		s.empty(a)
	})
}

// What remote clients ask of any gateway is what one Manager does.
func TestRemoteModel(t *testing.T) {
	type ask struct {
		*pending
		g     *gateway
		ino   uint64
		lock  lock.Lock
		space lock.Space
	}
	onStore(t, func(t *testing.T, s *store) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		r := rand.New(rand.NewPCG(seed, 0))
		gates := []*gateway{s.open(), s.open(), s.open()}
		model := lock.New(0)
		var waiting []*ask
		// drop has the model forget what the gateways dismiss.
		drop := func(is func(*ask) bool) {
			for _, p := range waiting {
				if is(p) && p.cancels() {
					p.want <- lock.ErrInterrupted
				}
			}
		}
		for step := range 600 {
			n := r.IntN(len(gates))
			if r.IntN(40) == 0 { // one dies, and another comes
				gates[n].end()
				drop(func(p *ask) bool { return p.g == gates[n] })
				waiting = slices.DeleteFunc(waiting, func(p *ask) bool { return p.g == gates[n] })
				must(t, gates[(n+1)%3].Sweep(bg))
				gates[n] = s.open()
			}
			g := gates[n]
			o := remote(string(rune('a'+r.IntN(3))), string(rune('1'+r.IntN(2))))
			ino, start := r.Uint64N(3)+1, r.Uint64N(20)
			l := lock.Lock{Owner: o, Type: lock.Type(r.IntN(2)), Start: start, End: start + r.Uint64N(10), Era: 3 + 2*uint32(r.IntN(2))}
			space := lock.Range
			if r.IntN(2) == 0 {
				space, l.Type, l.Start, l.End = lock.Share, lock.Reserve(uint8(r.IntN(4)), uint8(r.IntN(4))), 0, lock.EOF
			}
			what := func(w *ask) bool {
				x := w.lock
				return w.ino == ino && w.space == space && x.Owner == o && x.Start == l.Start && x.End == l.End
			}
			var got, want error
			switch k := r.IntN(20); {
			case k < 5:
				drop(func(w *ask) bool { return what(w) && w.lock.Type == l.Type && w.g != g })
				got, want = g.TryLock(bg, ino, space, l), model.TryLock(bg, ino, space, l)
			case k < 12:
				if slices.ContainsFunc(waiting, func(w *ask) bool { return what(w) && w.g == g }) {
					continue // a server asks once for each
				}
				p := &ask{&pending{got: make(chan error, 2), want: make(chan error, 2)}, g, ino, l, space}
				drop(func(w *ask) bool { return what(w) && w.lock.Type == l.Type })
				var a, b bool
				p.cancel, a, got = g.LockFunc(bg, ino, space, l, func(err error) { p.got <- err })
				p.cancels, b, want = model.LockFunc(bg, ino, space, l, func(err error) { p.want <- err })
				if a != b {
					t.Fatalf("step %d: it waits: %v, in the model: %v", step, a, b)
				}
				if a {
					waiting = append(waiting, p)
				}
			case k < 17:
				drop(what)
				got, want = g.Unlock(bg, ino, space, l), model.Unlock(bg, ino, space, l)
			case k < 18:
				found := slices.ContainsFunc(waiting, func(w *ask) bool { return what(w) && w.lock.Type == l.Type })
				drop(func(w *ask) bool { return what(w) && w.lock.Type == l.Type })
				if a, err := g.Withdraw(bg, ino, space, l); err != nil || a != found {
					t.Fatalf("step %d: withdrawn: %v, in the model %v, %v", step, a, found, err)
				}
			case k == 18 && r.IntN(4) == 0:
				keep := uint32(r.IntN(2)) * 5
				must(t, g.Rebooted(bg, o.Client, keep))
				must(t, model.Rebooted(bg, o.Client, keep))
			default:
				h, a, err := g.Test(bg, ino, space, l)
				m, b, _ := model.Test(bg, ino, space, l)
				if a != b || err != nil || h.Start != m.Start {
					t.Fatalf("step %d: %+v %v, in the model %+v %v, %v", step, h, a, m, b, err)
				}
			}
			if !errors.Is(got, want) {
				t.Fatalf("step %d: %v, in the model %v", step, got, want)
			}
			time.Sleep(2 * pollSlow) // until all are told
			waiting = slices.DeleteFunc(waiting, func(p *ask) bool {
				if len(p.got) != len(p.want) {
					t.Fatalf("step %d: %d are told, in the model %d: %+v", step, len(p.got), len(p.want), p.lock)
				}
				if len(p.got) == 0 {
					return false
				}
				a, b := <-p.got, <-p.want
				if b == nil && errors.Is(a, lock.ErrInterrupted) {
					// Granted, and changed by another request of its owner before it was
					// told: it asks again.
					held, err := g.Holds(bg, p.ino, p.space, p.lock)
					if must(t, err); !held {
						b = a
					}
				}
				if !errors.Is(a, b) {
					t.Fatalf("step %d: told %v, in the model %v", step, a, b)
				}
				return true
			})
			all := func(*lock.Entry) bool { return true }
			a, _, err := gates[0].List(bg, 1000, all)
			b, _, _ := model.List(bg, 1000, all)
			if must(t, err); !slices.Equal(sorted(a), sorted(b)) {
				t.Fatalf("step %d:\n%+v\nin the model\n%+v", step, a, b)
			}
			counts := 0
			for _, m := range []string{"a", "b", "c"} {
				counts += gates[1].remotes(m)
			}
			if counts != model.Count() {
				t.Fatalf("step %d: the store counts %d, the model %d", step, counts, model.Count())
			}
		}
		for _, m := range []string{"a", "b", "c"} {
			must(t, gates[0].Rebooted(bg, remote(m, "").Client, 0))
		}
		s.empty(gates...)
	})
}

// rounds counts transactions.
type rounds struct {
	cluster.KV
	n int
}

func (k *rounds) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	k.n++
	return k.KV.Update(ctx, fn)
}

func (k *rounds) View(ctx context.Context, fn func(cluster.Reader) error) error {
	k.n++
	return k.KV.View(ctx, fn)
}

func (k *rounds) Peek(ctx context.Context, fn func(cluster.Reader) error) error {
	k.n++
	return k.KV.Peek(ctx, fn)
}
