package lock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const modelBytes = 24

// model holds, per owner, the type of lock of each byte: -1 for none.
type model map[Owner]*[modelBytes]int

func (m model) of(o Owner) *[modelBytes]int {
	if m[o] == nil {
		m[o] = new([modelBytes]int)
		for i := range m[o] {
			m[o][i] = -1
		}
	}
	return m[o]
}

func (m model) conflicts(l Lock) bool {
	for o, bytes := range m {
		for b := l.Start; b <= l.End && o != l.Owner; b++ {
			if h := bytes[b]; h >= 0 && (Type(h) == Exclusive || l.Type == Exclusive) {
				return true
			}
		}
	}
	return false
}

func TestAgainstModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	owners := []Owner{alice, bob, carol}
	m, ref := New(0), model{}
	for i := range 20000 {
		a, b := r.Uint64N(modelBytes), r.Uint64N(modelBytes)
		l := rng(owners[r.IntN(3)], Type(r.IntN(2)), min(a, b), max(a, b))
		val := int(l.Type)
		switch r.IntN(5) {
		case 0, 1, 2:
			err := m.TryLock(bg, 7, Range, l)
			if want := ref.conflicts(l); want != errors.Is(err, ErrWouldBlock) || (!want && err != nil) {
				t.Fatalf("step %d: TryLock %v = %v, want conflict %v", i, l, err, want)
			}
			if err != nil {
				continue
			}
		case 3:
			if err := m.Unlock(bg, 7, Range, Lock{Owner: l.Owner, Start: l.Start, End: l.End}); err != nil {
				t.Fatal(err)
			}
			val = -1
		default:
			if _, held, _ := m.Test(bg, 7, Range, l); held != ref.conflicts(l) {
				t.Fatalf("step %d: Test %v = %v", i, l, held)
			}
			continue
		}
		for b := l.Start; b <= l.End; b++ {
			ref.of(l.Owner)[b] = val
		}
		if err := compare(m, ref); err != nil {
			t.Fatalf("step %d, after %v: %v", i, l, err)
		}
	}
}

// compare checks the held ranges against the model, and the invariants.
func compare(m *Manager, ref model) error {
	got := model{}
	n := 0
	if f := m.files[7]; f != nil {
		for i, h := range f.Held[Range] {
			n++
			for b := h.Start; b <= h.End; b++ {
				if got.of(h.Owner)[b] >= 0 {
					return fmt.Errorf("%v overlaps its owner's own", h)
				}
				got.of(h.Owner)[b] = int(h.Type)
			}
			for _, o := range f.Held[Range][i+1:] {
				if o.Owner == h.Owner && o.Type == h.Type && (o.End+1 == h.Start || h.End+1 == o.Start) {
					return fmt.Errorf("%v and %v are not merged", h, o)
				}
			}
		}
	}
	if n != m.Count() {
		return fmt.Errorf("Count %d, held %d", m.Count(), n)
	}
	for o := range ref {
		if *ref.of(o) != *got.of(o) {
			return fmt.Errorf("owner %v holds %v, want %v", o, *got.of(o), *ref.of(o))
		}
	}
	return nil
}

// Many owners lock, wait and unlock at the same time: exclusion holds, and
// nothing is left at the end. Deadlocks are broken, so all get done.
func TestConcurrent(t *testing.T) {
	m := New(0)
	var users [4]atomic.Int64 // +1 per reader, +1000 per writer
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			r := rand.New(rand.NewPCG(uint64(g), 2))
			me := Owner{"c", fmt.Sprint(g)}
			for range 300 {
				first, second := r.IntN(4), r.IntN(4)
				if first == second {
					continue
				}
				var have []int
				for _, b := range []int{first, second} {
					ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
					typ := Type(r.IntN(2))
					err := m.Lock(ctx, 1, Range, rng(me, typ, uint64(b), uint64(b)))
					cancel()
					if errors.Is(err, ErrDeadlock) {
						break
					}
					if err != nil {
						t.Errorf("lock: %v", err)
						break
					}
					have = append(have, b)
					step := int64(1)
					if typ == Exclusive {
						step = 1000
					}
					if now := users[b].Add(step); now > 1000 || (step == 1 && now >= 1000) {
						t.Errorf("byte %d: %d users", b, now)
					}
					users[b].Add(-step)
				}
				for _, b := range have {
					m.Unlock(bg, 1, Range, Lock{Owner: me, Start: uint64(b), End: uint64(b)})
				}
			}
			m.ReleaseOwner(1, Range, me)
		}()
	}
	wg.Wait()
	if m.Count() != 0 || len(m.waiting) != 0 || len(m.files) != 0 {
		t.Errorf("left: %d locks, %d owners, %d files", m.Count(), len(m.waiting), len(m.files))
	}
}
