package sharedlocks

import (
	"testing"

	"ogw/vfs/lock"
)

// What is granted from the queue of one gateway, and given up at another one before the first looks,
// is not reported as granted.
func TestFreedBeforeLook(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b := s.open(), s.open()
		q, p := exclusive(remote("10.0.0.1", "1")), exclusive(remote("10.0.0.2", "1"))
		other := exclusive(remote("10.0.0.3", "1"))
		must(t, b.TryLock(bg, 1, lock.Range, q))
		got, _ := waits(t, a, 1, lock.Range, p)
		nothing(t, got)
		a.away.Store(true)                                                             // so it does not look
		must(t, b.Unlock(bg, 1, lock.Range, lock.Lock{Owner: q.Owner, End: lock.EOF})) // p granted
		must(t, b.Rebooted(bg, p.Owner.Client, 0))                                     // operator frees p
		must(t, b.TryLock(bg, 1, lock.Range, other))
		a.away.Store(false)
		err := <-got
		if err == nil {
			t.Error("p is told GRANTED while other holds the exclusive lock")
		}
	})
}

// A grant that nobody took is given up, but not what its owner got meanwhile at another gateway.
func TestGrantAmongOthers(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b := s.open(), s.open()
		q := lock.Lock{Owner: remote("10.0.0.1", "1"), Type: lock.Exclusive, Start: 50, End: 59}
		p := remote("10.0.0.2", "1")
		must(t, b.TryLock(bg, 1, lock.Range, q))
		got, cancel := waits(t, a, 1, lock.Range, lock.Lock{Owner: p, Type: lock.Exclusive, Start: 0, End: 99})
		must(t, b.TryLock(bg, 1, lock.Range, lock.Lock{Owner: p, Type: lock.Exclusive, Start: 0, End: 9})) // p knows
		must(t, b.Unlock(bg, 1, lock.Range, lock.Lock{Owner: q.Owner, End: lock.EOF}))
		must(t, <-got)
		cancel() // the callback failed
		x := lock.Lock{Owner: remote("10.0.0.3", "1"), Type: lock.Exclusive, Start: 0, End: 9}
		if err := b.TryLock(bg, 1, lock.Range, x); err == nil {
			t.Error("what p was granted at B directly is given up by the callback that failed at A")
		}
	})
}

// What unlocks split counts at a gateway that has not met the machine, too.
func TestSplitsElsewhere(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b := s.open(), s.open()
		for _, g := range []*gateway{a, b} {
			g.machines.tally = lock.NewTally(40)
			g.machines.after = 10
		}
		p := remote("10.0.0.1", "1")
		for ino := uint64(1); ino <= 5; ino++ {
			must(t, a.TryLock(bg, ino, lock.Range, exclusive(p)))
			for i := uint64(0); i < 100; i++ {
				if err := b.Unlock(bg, ino, lock.Range, lock.Lock{Owner: p, Start: 2*i + 1, End: 2*i + 1}); err != nil {
					wantErr(t, err, lock.ErrNoLocks)
					break
				}
			}
		}
		if n := a.remotes("10.0.0.1"); n > 60 { // 40, and what each gateway lends before it counts
			t.Errorf("%d locks of a machine that may have 40", n)
		}
	})
}

// A machine shares a part for as long as any of its names does.
func TestMachineOfManyNames(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a := s.open()
		a.machines.tally = lock.NewTally(100000)
		a.SetAccount("nfs 1::1 here one", "nfs 1::")
		a.SetAccount("nfs 1::1 here two", "nfs 1::")
		a.SetAccount("nfs 1::1 here two", "") // forgotten
		a.SetAccount("nfs 1::2 here one", "nfs 1::")
		p := lock.Owner{Client: "nfs 1::1 here one", ID: "1"}
		for i := range 10 {
			must(t, a.TryLock(bg, uint64(i+1), lock.Range, exclusive(p)))
		}
		q := lock.Owner{Client: "nfs 1::2 here one", ID: "1"}
		for i := range 10 {
			must(t, a.TryLock(bg, uint64(i+101), lock.Range, exclusive(q)))
		}
		// how much the part "nfs 1::" has: ask Full for how many more
		n := 0
		for !a.machines.tally.Full("nfs 1::2 ", n+1) {
			n++
		}
		m := 0
		for !a.machines.tally.Full("nfs 9::9 ", m+1) {
			m++
		}
		if m-n != 20 {
			t.Errorf("the account has %d, want those of both machines, 20", m-n)
		}
	})
}
