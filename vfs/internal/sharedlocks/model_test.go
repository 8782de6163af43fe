package sharedlocks

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"ogw/vfs/lock"
)

// pending is a request that waits, at a gateway and in the model.
type pending struct {
	got, want       chan error
	cancel, cancels func() bool
}

// Whatever is asked of three gateways in turn, what they grant, refuse and have waiting is
// what one Manager does.
func TestModel(t *testing.T) {
	onStore(t, func(t *testing.T, s *store) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		r := rand.New(rand.NewPCG(seed, 0))
		var gates []*gateway
		for range 3 {
			gates = append(gates, s.open())
		}
		model := lock.New(0)
		var waiting []*pending
		for step := range 800 {
			g := gates[r.IntN(len(gates))]
			o := owner(g, string(rune('a'+r.IntN(3))))
			ino, space := r.Uint64N(3)+1, lock.Space(r.IntN(int(lock.Spaces)))
			start := r.Uint64N(20)
			l := lock.Lock{Owner: o, Type: lock.Type(r.IntN(2)), Start: start, End: start + r.Uint64N(10), PID: uint32(r.IntN(3))}
			if space == lock.Share {
				l.Type = lock.Reserve(uint8(r.IntN(4)), uint8(r.IntN(4)))
			}
			var got, want error
			what := r.IntN(20)
			switch {
			case what < 6:
				got, want = g.TryLock(bg, ino, space, l), model.TryLock(bg, ino, space, l)
			case what < 12:
				p := &pending{got: make(chan error, 1), want: make(chan error, 1)}
				var a, b bool
				p.cancel, a, got = g.LockFunc(bg, ino, space, l, func(err error) { p.got <- err })
				p.cancels, b, want = model.LockFunc(bg, ino, space, l, func(err error) { p.want <- err })
				if a != b {
					t.Fatalf("step %d: it waits: %v, in the model: %v", step, a, b)
				}
				if a {
					waiting = append(waiting, p)
				}
			case what < 17:
				got, want = g.Unlock(bg, ino, space, lock.Lock{Owner: o, Start: l.Start, End: l.End}), model.Unlock(bg, ino, space, lock.Lock{Owner: o, Start: l.Start, End: l.End})
			case what < 18:
				g.ReleaseOwner(ino, space, o)
				model.ReleaseOwner(ino, space, o)
			case what < 19 && len(waiting) > 0:
				p := waiting[r.IntN(len(waiting))]
				if a, b := p.cancel(), p.cancels(); a != b {
					t.Fatalf("step %d: cancelled: %v, in the model: %v", step, a, b)
				} else if a {
					p.got <- nil
					p.want <- nil
				}
			case what == 19 && r.IntN(20) == 0:
				g.ReleaseClient(o.Client)
				model.ReleaseClient(o.Client)
			default:
				h, a, err := g.Test(bg, ino, space, l)
				m, b, _ := model.Test(bg, ino, space, l)
				if a != b || err != nil || h.Start != m.Start {
					t.Fatalf("step %d: %+v %v, in the model %+v %v, %v", step, h, a, m, b, err)
				}
			}
			if !errors.Is(got, want) && (got == nil || want == nil || got.Error() != want.Error()) {
				t.Fatalf("step %d: %v, in the model %v", step, got, want)
			}
			time.Sleep(2 * pollSlow) // until all are told
			waiting = slices.DeleteFunc(waiting, func(p *pending) bool {
				if len(p.got) != len(p.want) {
					t.Fatalf("step %d: %d are told, in the model %d", step, len(p.got), len(p.want))
				}
				if len(p.got) == 0 {
					return false
				}
				if a, b := <-p.got, <-p.want; !errors.Is(a, b) {
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
			n := 0
			for _, g := range gates {
				n += g.Count()
			}
			if n != model.Count() {
				t.Fatalf("step %d: they count %d, in the model %d", step, n, model.Count())
			}
		}
		for _, g := range gates {
			g.ReleaseClient(owner(g, "").Client)
		}
		s.empty(gates...)
	})
}
