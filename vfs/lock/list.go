package lock

import (
	"cmp"
	"slices"
)

// Entry is a lock that is held, or a request that waits for one.
type Entry struct {
	File    uint64
	Space   Space
	Lock    Lock
	Waiting bool
}

// List returns the locks and waiting requests for which keep returns true, at
// most max of them, by file and start; more reports whether there are others. keep
// is called with the Manager locked: it must not call back, nor block.
func (m *Manager) List(max int, keep func(*Entry) bool) (list []Entry, more bool) {
	m.mu.Lock()
	add := func(e Entry) {
		switch {
		case !keep(&e):
		case len(list) >= max:
			more = true
		default:
			list = append(list, e)
		}
	}
	for ino, f := range m.files {
		for s := range f.held {
			for _, l := range f.held[s] {
				add(Entry{File: ino, Space: Space(s), Lock: l})
			}
		}
		for _, w := range f.waiters {
			add(Entry{File: ino, Space: w.space, Lock: w.lock, Waiting: true})
		}
	}
	m.mu.Unlock()
	slices.SortStableFunc(list, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Space, b.Space), cmp.Compare(a.Lock.Start, b.Lock.Start))
	})
	return list, more
}
