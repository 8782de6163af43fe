package ids

import (
	"context"
	"slices"
)

// Use is the work of somebody who takes numbers for blobs and contents that nothing
// names yet: it begins before it takes the first, and ends when a transaction has named
// them, or none will. nil is a use that has ended.
type Use struct {
	a    *Allocator
	from uint64 // it takes none that is smaller
}

// Begin begins one. It ends by End or Doubt, the first that is called.
func (a *Allocator) Begin() *Use {
	a.using.Lock()
	defer a.using.Unlock()
	if a.uses == nil {
		a.uses = make(map[uint64]int)
	}
	from := a.next.Load()
	a.uses[from]++
	return &Use{a, from}
}

// End is for who knows whether they are named.
func (u *Use) End() { u.end(false) }

// Doubt is for who does not: a transaction that names them may still be on its way.
func (u *Use) Doubt() { u.end(true) }

func (u *Use) end(doubt bool) {
	if u == nil || u.a == nil {
		return
	}
	a := u.a
	u.a = nil
	a.using.Lock()
	defer a.using.Unlock()
	if doubt {
		a.doubts = append(a.doubts, u.from)
	}
	if a.uses[u.from]--; a.uses[u.from] == 0 {
		delete(a.uses, u.from)
	}
}

// Oldest returns a number: this process will name nothing with a smaller one that is not
// named yet.
func (a *Allocator) Oldest() uint64 {
	a.using.Lock()
	defer a.using.Unlock()
	oldest := a.next.Load() // who begins later takes none before
	for from := range a.uses {
		oldest = min(oldest, from)
	}
	for _, from := range a.doubts {
		oldest = min(oldest, from)
	}
	return oldest
}

// Renew gives up what is leased and smaller than least, so that Oldest passes it when no use
// needs it any more.
func (a *Allocator) Renew(ctx context.Context, least uint64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for range 2 { // one that is under way may have begun before
		if a.next.Load() >= least {
			return nil
		}
		if err := a.lease(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Unsettled returns how many uses are under way, and how many ended in doubt.
func (a *Allocator) Unsettled() (uses, doubts int) {
	a.using.Lock()
	defer a.using.Unlock()
	for _, n := range a.uses {
		uses += n
	}
	return uses, len(a.doubts)
}

// Settle ends the first n doubts: no transaction of before is on its way any more.
func (a *Allocator) Settle(n int) {
	a.using.Lock()
	defer a.using.Unlock()
	a.doubts = slices.Delete(a.doubts, 0, n)
}
