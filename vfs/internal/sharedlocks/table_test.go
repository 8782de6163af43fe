package sharedlocks

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
	"ogw/vfs/lock"
)

var spaces = []lock.Space{lock.Range, lock.Flock, lock.Share}

// What one gateway locks, another one refuses, and grants in the order of arrival when it is
// given up.
func TestTwoGateways(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b := s.open(), s.open()
		for _, space := range spaces {
			la, lb, lc := exclusive(owner(a, "1")), exclusive(owner(b, "1")), exclusive(owner(a, "2"))
			must(t, la.Normalize(space))
			must(t, a.TryLock(bg, 1, space, la))
			wantErr(t, b.TryLock(bg, 1, space, lb), lock.ErrWouldBlock)
			must(t, b.TryLock(bg, 2, space, lb))
			must(t, b.Unlock(bg, 2, space, lock.Lock{Owner: lb.Owner, End: lock.EOF}))
			if h, held, err := b.Test(bg, 1, space, lb); err != nil || !held || h != la {
				t.Fatalf("%+v, %v, %v", h, held, err)
			}
			first, _ := waits(t, b, 1, space, lb)
			second, _ := waits(t, a, 1, space, lc)
			nothing(t, first)
			a.ReleaseOwner(1, space, la.Owner)
			must(t, <-first)
			nothing(t, second)
			b.ReleaseOwner(1, space, lb.Owner)
			must(t, <-second)
			if n := a.ClientCount(la.Owner.Client); n != 1 {
				t.Errorf("the client has %d", n)
			}
			a.ReleaseClient(la.Owner.Client)
		}
		s.empty(a, b)
	})
}

// The locks of a gateway that is gone are none, and what waited behind them is granted; what
// waited for it is forgotten.
func TestGatewayGone(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b, c := s.open(), s.open(), s.open()
		for _, space := range spaces {
			must(t, a.TryLock(bg, 1, space, exclusive(owner(a, "1"))))
			waits(t, a, 1, space, exclusive(owner(a, "2")))
		}
		var results []chan error
		for _, space := range spaces {
			got, _ := waits(t, b, 1, space, exclusive(owner(b, "1")))
			nothing(t, got)
			results = append(results, got)
			must(t, c.TryLock(bg, 2, space, exclusive(owner(c, "1"))))
		}
		a.end()
		for _, got := range results {
			must(t, <-got)
		}
		b.ReleaseClient(owner(b, "1").Client)
		c.end() // nobody asks for these any more
		if s.pairs() == 0 {
			t.Error("what is to be swept is not there")
		}
		must(t, b.Sweep(bg))
		s.empty(b)
	})
}

// Two that wait for one another, in two files at two gateways, do not wait for ever, also if
// they begin at once.
func TestDeadlock(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b := s.open(), s.open()
		la, lb := exclusive(owner(a, "1")), exclusive(owner(b, "1"))
		must(t, a.TryLock(bg, 1, lock.Range, la))
		must(t, b.TryLock(bg, 2, lock.Range, lb))
		got, _ := waits(t, a, 2, lock.Range, la)
		wantErr(t, b.Lock(bg, 1, lock.Range, lb), lock.ErrDeadlock)
		b.ReleaseOwner(2, lock.Range, lb.Owner)
		must(t, <-got)
		a.ReleaseClient(la.Owner.Client)
		for range 20 {
			must(t, a.TryLock(bg, 1, lock.Range, la))
			must(t, b.TryLock(bg, 2, lock.Range, lb))
			ends := make(chan error, 2)
			go func() { err := a.Lock(bg, 2, lock.Range, la); a.ReleaseClient(la.Owner.Client); ends <- err }()
			go func() { err := b.Lock(bg, 1, lock.Range, lb); b.ReleaseClient(lb.Owner.Client); ends <- err }()
			dead := 0
			for range 2 {
				if err := <-ends; err != nil {
					wantErr(t, err, lock.ErrDeadlock)
					dead++
				}
			}
			if dead == 0 {
				t.Fatal("both have both")
			}
		}
		s.empty(a, b)
	})
}

// A cycle that closes when somebody else is granted is found, too, whichever gateway the one
// who waits is at.
func TestDeadlockLater(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b, c := s.open(), s.open(), s.open()
		la, lb, lc := exclusive(owner(a, "1")), exclusive(owner(b, "1")), exclusive(owner(c, "1"))
		must(t, c.TryLock(bg, 1, lock.Range, lc))
		must(t, b.TryLock(bg, 2, lock.Range, lb))
		ra, _ := waits(t, a, 1, lock.Range, la)  // first in the queue
		ra2, _ := waits(t, a, 2, lock.Range, la) // another thread of the process, for b
		rb, _ := waits(t, b, 1, lock.Range, lb)  // behind a
		c.ReleaseOwner(1, lock.Range, lc.Owner)  // a has 1; b waits for a, who waits for b
		must(t, <-ra)
		wantErr(t, <-rb, lock.ErrDeadlock)
		b.ReleaseClient(lb.Owner.Client)
		must(t, <-ra2)
		a.ReleaseClient(la.Owner.Client)
		s.empty(a, b, c)
	})
}

// Who is interrupted has nothing, unless it was granted meanwhile, and holds up nobody.
func TestInterrupted(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b := s.open(), s.open()
		for _, space := range spaces {
			la, lb := exclusive(owner(a, "1")), exclusive(owner(b, "1"))
			must(t, a.TryLock(bg, 1, space, la))
			ctx, cancel := context.WithTimeout(bg, time.Second)
			wantErr(t, b.Lock(ctx, 1, space, lb), lock.ErrInterrupted)
			cancel()
			a.ReleaseOwner(1, space, la.Owner)
			must(t, a.TryLock(bg, 1, space, la))

			got, giveUp := waits(t, b, 1, space, lb)
			b.away.Store(true) // it does not learn of the grant
			a.ReleaseOwner(1, space, la.Owner)
			time.Sleep(time.Second)
			b.away.Store(false)
			if giveUp() {
				t.Error("it says that nothing is held")
			}
			must(t, <-got)
			wantErr(t, a.TryLock(bg, 1, space, la), lock.ErrWouldBlock)
			b.ReleaseOwner(1, space, lb.Owner)

			// The store does not say, and the lock is granted: it is given up again.
			must(t, a.TryLock(bg, 1, space, la))
			_, giveUp = waits(t, b, 1, space, lb)
			b.away.Store(true)
			if !giveUp() {
				t.Error("it says that the lock is held")
			}
			a.ReleaseOwner(1, space, la.Owner)
			wantErr(t, a.TryLock(bg, 1, space, la), lock.ErrWouldBlock)
			b.away.Store(false)
			b.settleDoubts()
			time.Sleep(2 * time.Second)
			must(t, a.TryLock(bg, 1, space, la))
			a.ReleaseOwner(1, space, la.Owner)
			b.settleDoubts()
		}
		s.empty(a, b)
	})
}

// What a close gives up while the engine is away is given up when it is there again, and
// before what the owner asks for then.
func TestAwayAtUnlock(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b := s.open(), s.open()
		for _, space := range spaces {
			la, lb := exclusive(owner(a, "1")), exclusive(owner(b, "1"))
			must(t, a.TryLock(bg, 1, space, la))
			got, _ := waits(t, b, 1, space, lb)
			a.away.Store(true)
			a.ReleaseOwner(1, space, la.Owner)
			wantErr(t, a.TryLock(bg, 1, space, la), fserr.ErrUnavailable)
			nothing(t, got)
			a.away.Store(false)
			must(t, <-got)
			wantErr(t, a.TryLock(bg, 1, space, la), lock.ErrWouldBlock)
			b.ReleaseOwner(1, space, lb.Owner)
			a.settleDoubts()
			time.Sleep(2 * time.Second)

			must(t, a.TryLock(bg, 1, space, la))
			a.away.Store(true)
			a.ReleaseOwner(1, space, la.Owner)
			a.away.Store(false)
			must(t, a.TryLock(bg, 1, space, la)) // before the poller tries again
			a.settleDoubts()
			time.Sleep(2 * time.Second)
			wantErr(t, b.TryLock(bg, 1, space, lb), lock.ErrWouldBlock)
			a.ReleaseOwner(1, space, la.Owner)
		}
		s.empty(a, b)
	})
}

// A request whose answer is lost may hold the lock: asked again, it finds its own, and the
// close of the file ends it in any case, also if it comes after that.
func TestAnswerLost(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b := s.open(), s.open()
		for _, space := range spaces {
			la, lb := exclusive(owner(a, "1")), exclusive(owner(b, "1"))
			must(t, la.Normalize(space))
			a.lost.Store(1)
			wantErr(t, a.TryLock(bg, 1, space, la), fserr.ErrUnavailable)
			wantErr(t, b.TryLock(bg, 1, space, lb), lock.ErrWouldBlock)
			must(t, a.TryLock(bg, 1, space, la))
			a.ReleaseOwner(1, space, la.Owner)
			must(t, b.TryLock(bg, 1, space, lb))

			a.lost.Store(1)
			_, _, err := a.LockFunc(bg, 1, space, la, func(error) { t.Error("nobody waits") })
			wantErr(t, err, fserr.ErrUnavailable)
			time.Sleep(2 * time.Second)
			b.ReleaseOwner(1, space, lb.Owner)
			must(t, b.TryLock(bg, 1, space, lb)) // nobody is before it
			b.ReleaseOwner(1, space, lb.Owner)
			a.settleDoubts()

			a.away.Store(true)
			wantErr(t, a.TryLock(bg, 1, space, la), fserr.ErrUnavailable)
			a.away.Store(false)
			a.ReleaseOwner(1, space, la.Owner)
			late := a.with(func(s *state) { s.take(space, la) }) // the transaction of before
			must(t, late)
			a.settleDoubts() // from here on none comes
			time.Sleep(2 * time.Second)
			must(t, b.TryLock(bg, 1, space, lb))
			b.ReleaseOwner(1, space, lb.Owner)
		}
		s.empty(a, b)
	})
}

// However often the store does not answer, no more is kept than of one time.
func TestLongOutage(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b := s.open(), s.open()
		l := exclusive(owner(a, "1"))
		a.away.Store(true)
		for range 3 * maxLate {
			if err := a.Lock(bg, 1, lock.Range, l); err == nil {
				t.Fatal("it is granted")
			}
			a.ReleaseOwner(1, lock.Range, l.Owner)
		}
		time.Sleep(time.Minute)
		if f := a.files[1]; len(a.doubts) > 1 || len(f.late) > maxLate+1 || len(f.owners) > 1 {
			t.Errorf("%d doubts, %d late, %d owners", len(a.doubts), len(f.late), len(f.owners))
		}
		a.away.Store(false)
		time.Sleep(time.Second)
		must(t, b.TryLock(bg, 1, lock.Range, exclusive(owner(b, "1"))))
		a.settleDoubts()
		wantErr(t, a.TryLock(bg, 1, lock.Range, l), lock.ErrWouldBlock)
		b.ReleaseClient(owner(b, "1").Client)
		must(t, a.Lock(bg, 1, lock.Range, l))
		a.ReleaseClient(l.Owner.Client)
		s.empty(a, b)
	})
}

// with changes file 1 in the store, behind the back of the Table.
func (g *gateway) with(do func(s *state)) error {
	return g.s.c.KV.Update(bg, func(x cluster.Txn) error {
		s, err := load(x, g.id, 1, "", nil)
		if err != nil {
			return err
		}
		do(s)
		return s.store(x)
	})
}

// Who tries right after a close finds the lock free, at another gateway, too; one that stays
// since a copy is open holds up the first who tries alone.
func TestClosing(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b := s.open(), s.open()
		for _, space := range spaces {
			la, lb := exclusive(owner(a, "1")), exclusive(owner(b, "1"))
			must(t, a.TryLock(bg, 1, space, la))
			a.Closing(1, la.Owner)
			go func() {
				time.Sleep(closingWait / 2)
				a.ReleaseOwner(1, space, la.Owner)
				a.Closed(1, la.Owner)
			}()
			if _, held, err := b.TestSoon(bg, 1, space, lb); held || err != nil {
				t.Errorf("%v, %v", held, err)
			}
			must(t, b.TryLockSoon(bg, 1, space, lb))
			b.ReleaseOwner(1, space, lb.Owner)

			must(t, a.TryLock(bg, 1, space, la))
			refused := func(least, most time.Duration) {
				t.Helper()
				begin := time.Now()
				wantErr(t, b.TryLockSoon(bg, 1, space, lb), lock.ErrWouldBlock)
				if took := time.Since(begin); took < least || took > most {
					t.Errorf("refused after %v, want %v to %v", took, least, most)
				}
			}
			const soon = closingWait / 10
			refused(0, soon)
			for range 2 {
				a.Closing(1, la.Owner)
				refused(closingWait-soon, closingWait+soon)
				refused(0, soon)
			}
			a.Closing(1, la.Owner)
			must(t, a.TryLock(bg, 1, space, la)) // in use again
			refused(0, soon)
			a.ReleaseOwner(1, space, la.Owner)
		}
		s.empty(a, b)
	})
}

// The next server of a mount has what its programs held, all of it, unless somebody else got
// it meanwhile.
func TestReclaim(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b := s.open(), s.open()
		book := map[lock.Space]map[lock.Owner][]lock.Lock{lock.Range: {}, lock.Flock: {}}
		client := owner(a, "").Client
		journal := func(ino uint64, space lock.Space, held []lock.Lock) {
			clear(book[space])
			for _, l := range held {
				book[space][l.Owner] = append(book[space][l.Owner], l)
			}
		}
		a.SetJournal(client, journal)
		for _, id := range []string{"1", "2"} {
			l := lock.Lock{Owner: owner(a, id), End: 9}
			if id == "2" {
				l.Start, l.End, l.Type = 20, 29, lock.Exclusive
			}
			must(t, a.TryLock(bg, 1, lock.Range, l))
		}
		must(t, a.TryLock(bg, 1, lock.Flock, lock.Lock{Owner: owner(a, "3")}))
		if len(book[lock.Range]) != 2 || len(book[lock.Flock]) != 1 {
			t.Fatalf("%+v", book)
		}
		a.end()
		c := s.open()
		for space, owners := range book {
			for _, list := range owners {
				for _, l := range list {
					err := b.Reclaim(bg, 1, space, l)
					must(t, err)
				}
			}
		}
		b.SetJournal(client, journal)
		wantErr(t, c.TryLock(bg, 1, lock.Range, exclusive(owner(c, "1"))), lock.ErrWouldBlock)
		wantErr(t, c.TryLock(bg, 1, lock.Flock, exclusive(owner(c, "1"))), lock.ErrWouldBlock)
		b.ReleaseClient(client)
		if len(book[lock.Range])+len(book[lock.Flock]) != 0 {
			t.Errorf("%+v", book)
		}
		must(t, c.TryLock(bg, 1, lock.Range, exclusive(owner(c, "1"))))
		wantErr(t, b.Reclaim(bg, 1, lock.Range, lock.Lock{Owner: owner(a, "1"), End: 9}), lock.ErrWouldBlock)
		c.ReleaseClient(owner(c, "1").Client)
		s.empty(b, c)
	})
}

// The first of a mount's owners that is taken over does not cost the others theirs.
func TestReclaimAll(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b, c := s.open(), s.open(), s.open()
		one, two := lock.Lock{Owner: owner(a, "1"), End: 9}, lock.Lock{Owner: owner(a, "2"), Start: 20, End: 29}
		must(t, a.TryLock(bg, 1, lock.Range, one))
		must(t, a.TryLock(bg, 1, lock.Range, two))
		a.end()
		must(t, b.Reclaim(bg, 1, lock.Range, one))
		must(t, b.Reclaim(bg, 1, lock.Range, two))
		got, _ := waits(t, c, 1, lock.Range, exclusive(owner(c, "1")))
		nothing(t, got)
		b.ReleaseClient(one.Owner.Client)
		must(t, <-got)
		c.ReleaseClient(owner(c, "1").Client)
		s.empty(b, c)
	})
}

// More than one transaction can grant are granted by several, whose gateways are told.
func TestManyWaiters(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b := s.open(), s.open()
		for _, space := range spaces {
			must(t, a.TryLock(bg, 1, space, exclusive(owner(a, "1"))))
			var results []chan error
			for i := range 3*maxMoved + 1 {
				got, _ := waits(t, b, 1, space, lock.Lock{Owner: owner(b, fmt.Sprint(i)), End: lock.EOF})
				results = append(results, got)
			}
			a.ReleaseOwner(1, space, owner(a, "1"))
			for _, got := range results {
				must(t, <-got)
			}
			b.ReleaseClient(owner(b, "").Client)
		}
		s.empty(a, b)
	})
}

// A file takes no more than a bounded number, and gives up whatever it has.
func TestFileBound(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a := s.open()
		o := owner(a, "1")
		must(t, a.with(func(s *state) {
			for i := range uint64(maxFileLocks - 2) {
				s.take(lock.Range, lock.Lock{Owner: o, Start: 2 * i, End: 2 * i})
			}
		}))
		must(t, a.TryLock(bg, 1, lock.Range, lock.Lock{Owner: o, Start: 1 << 20, End: 1 << 20}))
		wantErr(t, a.TryLock(bg, 1, lock.Range, lock.Lock{Owner: o, Start: 1 << 30, End: 1 << 30}), lock.ErrNoLocks)
		must(t, a.Unlock(bg, 1, lock.Range, lock.Lock{Owner: o}))
		must(t, a.TryLock(bg, 1, lock.Range, lock.Lock{Owner: o, Start: 1 << 30, End: 1 << 30}))
		a.ReleaseOwner(1, lock.Range, o)
		s.empty(a)
	})
}

// A record that cannot be read refuses what is asked, and keeps nobody else waiting.
func TestCorrupt(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b := s.open(), s.open()
		must(t, a.TryLock(bg, 2, lock.Range, exclusive(owner(a, "1"))))
		got, _ := waits(t, b, 2, lock.Range, exclusive(owner(b, "1")))
		must(t, s.c.KV.Update(bg, func(x cluster.Txn) error { return x.Set(record.LockKey(1), []byte{77}) }))
		wantErr(t, a.TryLock(bg, 1, lock.Range, exclusive(owner(a, "1"))), fserr.ErrCorrupt)
		list, more, err := a.List(bg, 10, func(*lock.Entry) bool { return true })
		if must(t, err); len(list) != 2 || more || list[0].Gateway != 0 || list[1].Gateway != b.id || !list[1].Waiting {
			t.Errorf("%+v", list)
		}
		a.ReleaseOwner(2, lock.Range, owner(a, "1"))
		must(t, <-got)
		b.ReleaseClient(owner(b, "1").Client)
		must(t, s.c.KV.Update(bg, func(x cluster.Txn) error { return x.Delete(record.LockKey(1)) }))
		s.empty(a, b)
	})
}

func sorted(list []lock.Entry) []lock.Entry {
	for i := range list {
		list[i].Gateway = 0
	}
	slices.SortFunc(list, func(a, b lock.Entry) int {
		return slices.Compare(keyOf(&a), keyOf(&b))
	})
	return list
}

func keyOf(e *lock.Entry) []string {
	return []string{fmt.Sprintf("%d %d %v %s %s %020d", e.File, e.Space, e.Waiting, e.Lock.Owner.Client, e.Lock.Owner.ID, e.Lock.Start)}
}
