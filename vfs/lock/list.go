package lock

import (
	"cmp"
	"context"
	"slices"
)

// List implements Locks.
func (m *Manager) List(_ context.Context, max int, keep func(*Entry) bool) (list []Entry, more bool, err error) {
	b := NewListing(max, keep)
	m.mu.Lock()
	for ino, f := range m.files {
		b.Add(ino, f, func(*Entry) {})
	}
	m.mu.Unlock()
	list, more = b.Sorted()
	return list, more, nil
}

// Listing is what List returns, in the making.
type Listing struct {
	max  int
	keep func(*Entry) bool
	list []Entry
	more bool
}

// NewListing returns an empty one of at most max entries for which keep returns true.
func NewListing(max int, keep func(*Entry) bool) *Listing { return &Listing{max: max, keep: keep} }

// Add lists the locks of a file, each after complete has seen it.
func (b *Listing) Add(ino uint64, f *File, complete func(*Entry)) {
	for s := range f.Held {
		for _, l := range f.Held[s] {
			b.add(Entry{File: ino, Space: Space(s), Lock: l}, complete)
		}
	}
	for _, w := range f.Waiting {
		b.add(Entry{File: ino, Space: w.Space, Lock: w.Lock, Waiting: true}, complete)
	}
}

func (b *Listing) add(e Entry, complete func(*Entry)) {
	complete(&e)
	switch {
	case !b.keep(&e):
	case len(b.list) >= b.max:
		b.more = true
	default:
		b.list = append(b.list, e)
	}
}

// Sorted returns them by file, space and start; more reports whether there are others.
func (b *Listing) Sorted() (list []Entry, more bool) {
	slices.SortStableFunc(b.list, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Space, b.Space), cmp.Compare(a.Lock.Start, b.Lock.Start))
	})
	return b.list, b.more
}
