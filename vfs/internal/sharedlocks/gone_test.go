package sharedlocks

import (
	"strings"
	"testing"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
	"ogw/vfs/lock"
)

// Of a client that goes nobody waits for long: who would wait for itself through what it
// waits for is not told of a deadlock, whichever file comes first.
func TestGoneInNoCycle(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		g, h := s.open(), s.open()
		manager := lock.New(0)
		for name, c := range map[string]struct {
			at    lock.Locks
			gone  lock.Owner
			leave func(client string) error
		}{
			"one process":    {manager, lock.Owner{Client: "a", ID: "1"}, func(c string) error { manager.ReleaseClient(c); return nil }},
			"a program":      {g, owner(g, "a"), func(c string) error { g.ReleaseClient(c); return nil }},
			"another server": {g, remote("a", "1"), func(c string) error { return h.Rebooted(bg, c, 0) }},
		} {
			for _, ino := range [][3]uint64{{1, 2, 3}, {1, 3, 2}, {2, 1, 3}, {2, 3, 1}, {3, 1, 2}, {3, 2, 1}} {
				b, x, d := lock.Owner{Client: "b", ID: "b"}, lock.Owner{Client: "c", ID: "c"}, lock.Owner{Client: "d", ID: "d"}
				holds := func(o lock.Owner, ino, start, end uint64) {
					must(t, c.at.TryLock(bg, ino, lock.Range, lock.Lock{Owner: o, Type: lock.Exclusive, Start: start, End: end}))
				}
				waits := func(o lock.Owner, ino, start, end uint64) chan error {
					got := make(chan error, 1)
					l := lock.Lock{Owner: o, Type: lock.Exclusive, Start: start, End: end}
					_, waiting, err := c.at.LockFunc(bg, ino, lock.Range, l, func(err error) { got <- err })
					if must(t, err); !waiting {
						t.Fatalf("%s, %v: %+v does not wait", name, ino, l)
					}
					return got
				}
				// c waits for d alone, and once a is gone from the first file for b, too, which
				// waits for a, which waits for c.
				holds(d, ino[0], 0, 9)
				holds(c.gone, ino[0], 20, 29)
				holds(c.gone, ino[1], 0, 9)
				holds(x, ino[2], 0, 9)
				b0, b1 := waits(b, ino[0], 10, 29), waits(b, ino[1], 0, 9)
				a := waits(c.gone, ino[2], 0, 9)
				x0 := waits(x, ino[0], 0, 19)
				must(t, c.leave(c.gone.Client))
				wantErr(t, <-a, lock.ErrInterrupted)
				must(t, <-b0)
				must(t, <-b1)
				nothing(t, x0)
				c.at.ReleaseClient("d")
				c.at.ReleaseClient("b")
				must(t, <-x0)
				c.at.ReleaseClient("c")
			}
		}
		s.empty(g, h)
	})
}

// A file whose locks cannot be swept keeps nobody else's from it; that it cannot is told.
func TestSweepGoesOn(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a, b := s.open(), s.open()
		const files = 9
		for ino := range uint64(files) {
			must(t, a.TryLock(bg, ino, lock.Range, exclusive(remote("10.0.0.1", "1"))))
		}
		waits(t, b, 1, lock.Range, exclusive(owner(b, "damaged")))
		waits(t, b, 3, lock.Range, exclusive(owner(b, "damaged")))
		for ino := range uint64(files) {
			waits(t, b, ino, lock.Range, exclusive(owner(b, "other")))
		}
		b.end()
		must(t, s.c.KV.Update(bg, func(x cluster.Txn) error { return x.Set(record.WaitKey(owner(b, "damaged")), []byte{1}) }))
		wantErr(t, a.Sweep(bg), fserr.ErrCorrupt)
		for ino := range uint64(files) {
			if _, wait := s.holders(ino); (wait > 0) != (ino == 1 || ino == 3) {
				t.Errorf("file %d: %d wait", ino, wait)
			}
		}
		must(t, s.c.KV.Update(bg, func(x cluster.Txn) error {
			return x.Set(record.WaitKey(owner(b, "damaged")), record.EncodeWaits([]uint64{1, 3}))
		}))
		must(t, a.Sweep(bg))
		must(t, a.Rebooted(bg, remote("10.0.0.1", "").Client, 0))
		s.empty(a)
	})
}

// However many files cannot be read that a client has locks of, what is told and logged of them
// is of one, and their number; those that can be read are free.
func TestRebootedTellsOne(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		a := s.open()
		l := exclusive(remote("10.0.0.1", "1"))
		const files = 50
		for ino := range uint64(files) {
			must(t, a.TryLock(bg, ino, lock.Range, l))
		}
		must(t, s.c.KV.Update(bg, func(x cluster.Txn) error {
			for ino := range uint64(files - 1) {
				if err := x.Set(record.LockKey(ino), []byte{77}); err != nil {
					return err
				}
			}
			return nil
		}))
		err := a.Rebooted(bg, l.Owner.Client, 0)
		if wantErr(t, err, fserr.ErrCorrupt); len(err.Error()) > 300 || !strings.Contains(err.Error(), "48 more") {
			t.Errorf("%d bytes: %.300s", len(err.Error()), err)
		}
		if held, _ := s.holders(files - 1); held != 0 {
			t.Errorf("%d locks of a file that can be read", held)
		}
	})
}
