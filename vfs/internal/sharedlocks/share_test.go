package sharedlocks

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
	"ogw/vfs/lock"
)

func reserved(o lock.Owner, access, deny uint8) lock.Lock {
	return lock.Lock{Owner: o, Type: lock.Reserve(access, deny)}
}

// What a remote client reserves through one gateway all know, whoever is put out; it is told
// the same again, replaces it, and gives it up through any; nobody else does.
func TestSharesAnyGateway(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b, c := s.open(), s.open(), s.open()
		p, q, m := remote("10.0.0.1", "1"), remote("10.0.0.2", "1"), owner(c, "1")
		must(t, a.TryLock(bg, 1, lock.Share, reserved(p, 1, 2)))
		must(t, c.TryLock(bg, 1, lock.Share, reserved(m, 1, 0)))
		for _, g := range []*gateway{a, b, c} {
			must(t, g.TryLock(bg, 1, lock.Share, reserved(p, 1, 2)))
			wantErr(t, g.TryLock(bg, 1, lock.Share, reserved(q, 2, 0)), lock.ErrWouldBlock)
			wantErr(t, g.TryLock(bg, 1, lock.Share, reserved(q, 0, 1)), lock.ErrWouldBlock)
			must(t, g.Unlock(bg, 1, lock.Share, lock.Lock{Owner: q}))
			must(t, g.Unlock(bg, 1, lock.Share, lock.Lock{Owner: lock.Owner{Client: p.Client, ID: "2"}}))
			must(t, g.Rebooted(bg, q.Client, 0))
		}
		wantErr(t, b.TryLock(bg, 1, lock.Share, reserved(p, 3, 3)), lock.ErrWouldBlock) // m reads
		wantErr(t, b.TryLock(bg, 1, lock.Share, reserved(q, 2, 0)), lock.ErrWouldBlock) // and p has what it had
		must(t, b.TryLock(bg, 1, lock.Range, exclusive(q)))                             // another matter
		must(t, b.Unlock(bg, 1, lock.Range, lock.Lock{Owner: q, End: lock.EOF}))
		if n := b.remotes("10.0.0.1"); n != 1 {
			t.Errorf("%d of the first", n)
		}
		a.end()
		c.end() // with the program that reads
		wantErr(t, b.TryLock(bg, 1, lock.Share, reserved(q, 2, 0)), lock.ErrWouldBlock)
		d := s.open()
		must(t, d.Reclaim(bg, 1, lock.Share, reserved(p, 3, 3))) // as after the notice of a restart
		must(t, b.Sweep(bg))
		wantErr(t, b.Reclaim(bg, 1, lock.Share, reserved(q, 1, 0)), lock.ErrWouldBlock)
		must(t, d.Unlock(bg, 1, lock.Share, lock.Lock{Owner: p}))
		must(t, b.TryLock(bg, 1, lock.Share, reserved(q, 2, 3)))
		must(t, d.Rebooted(bg, q.Client, 0))
		s.empty(b, d)
	})
}

// The notice of a reboot ends, at any gateway, what was reserved before it.
func TestSharesReboot(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b := s.open(), s.open()
		before, after := reserved(remote("10.0.0.1", "1"), 1, 0), reserved(remote("10.0.0.1", "2"), 1, 2)
		before.Era, after.Era = 3, 5
		other := reserved(remote("10.0.0.2", "1"), 1, 0)
		for ino := range uint64(3) {
			must(t, errors.Join(a.TryLock(bg, ino, lock.Share, before), a.TryLock(bg, ino, lock.Share, other)))
		}
		must(t, b.TryLock(bg, 1, lock.Share, after))
		must(t, b.Rebooted(bg, before.Owner.Client, 5))
		must(t, a.TryLock(bg, 0, lock.Share, reserved(other.Owner, 3, 3)))
		wantErr(t, a.TryLock(bg, 1, lock.Share, reserved(other.Owner, 3, 3)), lock.ErrWouldBlock)
		must(t, a.Rebooted(bg, before.Owner.Client, 0))
		must(t, a.TryLock(bg, 1, lock.Share, reserved(other.Owner, 3, 3)))
		must(t, b.Rebooted(bg, other.Owner.Client, 0))
		s.empty(a, b)
	})
}

// Clients that ask three gateways at the same time: at no moment two have what excludes the other.
func TestSharesAtOnce(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		gates := []*gateway{s.open(), s.open(), s.open()}
		var writers, had atomic.Int32
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				g, o := gates[i%3], remote(fmt.Sprint("10.0.0.", i), "1")
				for range 30 {
					err := g.TryLock(bg, 1, lock.Share, reserved(o, 2, 2))
					if errors.Is(err, lock.ErrWouldBlock) {
						continue
					}
					if err != nil || writers.Add(1) > 1 {
						t.Errorf("another writes: %v", err)
					}
					had.Add(1)
					writers.Add(-1)
					if err := gates[(i+1)%3].Unlock(bg, 1, lock.Share, lock.Lock{Owner: o}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if had.Load() == 0 {
			t.Error("nobody had it")
		}
		s.empty(gates...)
	})
}

// A store that does not answer is an error, and nothing of a remote client's is late.
func TestSharesAway(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b := s.open(), s.open()
		p := remote("10.0.0.1", "1")
		must(t, a.TryLock(bg, 1, lock.Share, reserved(p, 1, 2)))
		a.away.Store(true)
		wantErr(t, a.TryLock(bg, 1, lock.Share, reserved(p, 1, 3)), fserr.ErrUnavailable)
		wantErr(t, a.Unlock(bg, 1, lock.Share, lock.Lock{Owner: p}), fserr.ErrUnavailable)
		a.away.Store(false)
		must(t, b.TryLock(bg, 1, lock.Share, reserved(p, 3, 3)))
		a.settleDoubts()
		must(t, a.Sweep(bg))
		wantErr(t, a.TryLock(bg, 1, lock.Share, reserved(remote("10.0.0.2", "1"), 1, 0)), lock.ErrWouldBlock)
		must(t, a.Unlock(bg, 1, lock.Share, lock.Lock{Owner: p}))
		s.empty(a, b)
	})
}

// While a gateway may be there that does not know share reservations, there are none; what
// there is can be given up.
func TestSharesBesideOlder(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b := s.open(), s.open()
		p := remote("10.0.0.1", "1")
		a.rules.Store(record.RulesShares - 1)
		wantErr(t, a.TryLock(bg, 1, lock.Share, reserved(p, 1, 2)), fserr.ErrUnavailable)
		wantErr(t, a.Reclaim(bg, 1, lock.Share, reserved(p, 1, 2)), fserr.ErrUnavailable)
		must(t, a.TryLock(bg, 1, lock.Range, exclusive(p)))
		must(t, a.Unlock(bg, 1, lock.Range, exclusive(p)))
		if n := s.pairs(); n != 0 {
			t.Errorf("%d records", n)
		}
		must(t, b.TryLock(bg, 1, lock.Share, reserved(p, 1, 2))) // who knows that none is there
		must(t, a.Unlock(bg, 1, lock.Share, lock.Lock{Owner: p}))
		s.empty(a, b)
	})
}

// Share reservations leave half of a file's record to locks, and who has one keeps it.
func TestSharesBound(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b := s.open(), s.open()
		long := func(i int) lock.Owner { return remote("10.0.0.1", fmt.Sprintf("%0400d", i)) }
		for _, c := range []struct {
			owner func(int) lock.Owner
			most  int
		}{
			{long, maxShareBytes / 455}, // of which each takes so much
			{func(i int) lock.Owner { return remote("10.0.0.1", fmt.Sprint(i)) }, maxFileShares},
		} {
			must(t, a.with(func(s *state) {
				s.share = true
				for i := range c.most - 3 {
					l := reserved(c.owner(i), 1, 0)
					must(t, l.Normalize(lock.Share))
					s.take(lock.Share, l)
				}
			}))
			n, err := c.most-3, error(nil)
			for ; err == nil; n++ {
				err = a.TryLock(bg, 1, lock.Share, reserved(c.owner(n), 1, 0))
			}
			if wantErr(t, err, lock.ErrNoLocks); n > c.most+1 {
				t.Errorf("%d shares", n)
			}
			must(t, b.TryLock(bg, 1, lock.Share, reserved(c.owner(0), 2, 0)))
			wantErr(t, b.TryLock(bg, 1, lock.Share, reserved(remote("10.0.0.2", strings.Repeat("x", 400)), 1, 0)), lock.ErrNoLocks)
			must(t, b.TryLock(bg, 1, lock.Range, exclusive(remote("10.0.0.2", "1"))))
			must(t, errors.Join(a.Rebooted(bg, remote("10.0.0.2", "").Client, 0), a.Rebooted(bg, long(0).Client, 0)))
		}
		s.empty(a, b)
	})
}

// A machine has a part of share reservations and locks together, through all gateways.
func TestSharesOfMachine(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b := s.open(), s.open()
		for _, g := range []*gateway{a, b} {
			g.machines.tally, g.machines.after = lock.NewTally(40), 10
		}
		p := remote("10.0.0.1", "1")
		n := 0
		for ino := range uint64(200) {
			g := []*gateway{a, b}[ino%2]
			err := g.TryLock(bg, ino, lock.Share, reserved(p, 1, 0))
			if err == nil {
				n++
				continue
			}
			wantErr(t, err, lock.ErrNoLocks)
		}
		for ino := range uint64(2) { // what it has it may change
			must(t, errors.Join(a.TryLock(bg, ino, lock.Share, reserved(p, 2, 0)), b.TryLock(bg, ino, lock.Share, reserved(p, 2, 0))))
		}
		if n > 60 { // 40, and what each gateway lends before it counts
			t.Errorf("%d shares of a machine that may have 40", n)
		}
		must(t, b.Rebooted(bg, p.Client, 0))
		s.empty(a, b)
	})
}
