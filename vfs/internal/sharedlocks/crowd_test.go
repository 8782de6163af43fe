package sharedlocks

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/mem"
	"ogw/vfs/internal/record"
	"ogw/vfs/lock"
)

// One more shared lock, in a file with many holders and as many that wait.
func TestCrowdedFile(t *testing.T) {
	for _, n := range []int{125, 1000} {
		c := mem.New(mem.Options{})
		f, err := record.DecodeFileLocks(nil)
		must(t, err)
		for i := range n {
			o := lock.Owner{Client: "mount 2", ID: fmt.Sprint(i)}
			f.Held[lock.Range] = append(f.Held[lock.Range], lock.Lock{Owner: o, End: lock.EOF})
			f.Holders[o] = record.LockHolder{Gateway: 2}
			w := lock.Waiter{Lock: exclusive(lock.Owner{Client: "mount 2", ID: fmt.Sprint("w", i)}), Ticket: uint64(i + 1)}
			f.Waiting = append(f.Waiting, w)
			f.Waits[w.Ticket] = 2
		}
		must(t, c.KV.Update(bg, func(x cluster.Txn) error {
			for g := range uint64(2) {
				if err := x.Set(record.FenceKey(g+1), []byte("{}")); err != nil {
					return err
				}
			}
			return x.Set(record.LockKey(1), f.Encode())
		}))
		g := New(Config{KV: c.KV, Gateway: 1, Log: slog.New(slog.DiscardHandler), Doubt: func(func()) {}})
		b := time.Now()
		ctx, stop := context.WithTimeout(bg, endTimeout)
		err = g.TryLock(ctx, 1, lock.Range, lock.Lock{Owner: lock.Owner{Client: "mount 1", ID: "1"}, End: lock.EOF})
		stop()
		must(t, err)
		t.Log(n, "holders and as many that wait:", time.Since(b))
		g.Close()
		must(t, c.Close())
	}
}

// holders returns how many hold something of a file, dead or not, and wait for it.
func (s *store) holders(ino uint64) (held, wait int) {
	must(s.t, s.c.KV.View(bg, func(r cluster.Reader) error {
		v, err := r.Get(record.LockKey(ino))
		if err != nil {
			return err
		}
		f, err := record.DecodeFileLocks(v)
		if err == nil {
			held, wait = len(f.Holders), len(f.Waiting)
		}
		return err
	}))
	return held, wait
}

// What a gateway leaves ends also where more hold a file than one transaction asks for, for
// who waits, who does not, and who sweeps.
func TestCrowdOfGateways(t *testing.T) {
	const most = maxFences + 8
	for name, meet := range map[string]func(t *testing.T, s *store, g *gateway, free lock.Lock){
		"sweep": func(t *testing.T, s *store, g *gateway, _ lock.Lock) {
			must(t, g.Sweep(bg))
			if held, _ := s.holders(1); held != most-1 {
				t.Errorf("%d of %d hold it", held, most-1)
			}
		},
		"try": func(t *testing.T, _ *store, g *gateway, free lock.Lock) { must(t, g.TryLock(bg, 1, lock.Range, free)) },
		"test": func(t *testing.T, _ *store, g *gateway, free lock.Lock) {
			if h, held, err := g.Test(bg, 1, lock.Range, free); held || err != nil {
				t.Errorf("%+v holds it: %v", h, err)
			}
		},
		"wait": func(t *testing.T, _ *store, g *gateway, free lock.Lock) {
			ctx, stop := context.WithTimeout(bg, 2*time.Second)
			defer stop()
			must(t, g.Lock(ctx, 1, lock.Range, free))
		},
	} {
		t.Run(name, func(t *testing.T) {
			onStore(t, func(t *testing.T, s *store) {
				var last *gateway
				for range most {
					last = s.open()
					must(t, last.TryLock(bg, 1, lock.Range, lock.Lock{Owner: owner(last, "1"), End: 9}))
				}
				must(t, last.TryLock(bg, 1, lock.Range, rng(owner(last, "1"), 10, 19)))
				free := rng(owner(s.all[0], "1"), 10, 19)
				wantErr(t, s.all[0].TryLock(bg, 1, lock.Range, free), lock.ErrWouldBlock)
				last.end()
				meet(t, s, s.all[0], free)
				for _, g := range s.all[:most-1] {
					g.ReleaseClient(owner(g, "").Client)
				}
				must(t, s.all[0].Sweep(bg))
				s.empty(s.all[:most-1]...)
			})
		})
	}
}

// So it does if more go at a time than one transaction asks for, and more waits of them than one
// may end; and then nobody looks any more.
func TestCrowdGoes(t *testing.T) {
	t.Run("hold", func(t *testing.T) { testCrowdGoes(t, false) })
	t.Run("wait", func(t *testing.T) { testCrowdGoes(t, true) })
}

func testCrowdGoes(t *testing.T, wait bool) {
	onStore(t, func(t *testing.T, s *store) {
		const stay, leave = maxFences + 1, maxFences + 1
		for range stay + leave {
			g := s.open()
			must(t, g.TryLock(bg, 1, lock.Range, lock.Lock{Owner: owner(g, "1"), End: 9}))
		}
		for _, g := range s.all[stay:] {
			if wait {
				waits(t, g, 1, lock.Range, rng(owner(g, "2"), 0, 9))
			}
		}
		for _, g := range s.all[stay:] {
			g.end()
		}
		must(t, s.all[0].Sweep(bg))
		time.Sleep(time.Minute)
		if held, wait := s.holders(1); held != stay || wait != 0 {
			t.Errorf("%d of %d hold it, and %d wait", held, stay, wait)
		}
		counted := &rounds{KV: s.all[0].cfg.KV}
		s.all[0].cfg.KV = counted
		time.Sleep(time.Minute)
		if counted.n != 0 {
			t.Errorf("%d transactions about nothing", counted.n)
		}
		for _, g := range s.all[:stay] {
			g.ReleaseClient(owner(g, "").Client)
		}
		s.empty(s.all[:stay]...)
	})
}
