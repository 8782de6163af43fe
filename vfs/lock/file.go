package lock

import "slices"

// File is the locks of one file. It decides what is granted and in which order; who is
// told of it, and where it is kept, is its user's. It is for one goroutine at a time.
type File struct {
	Held    [Spaces][]Lock // by Space
	Waiting []Waiter       // in order of arrival
}

// Waiter is a request that is not granted yet.
type Waiter struct {
	Space  Space
	Lock   Lock
	Ticket uint64 // unlike that of any other waiter of its File
}

// Try takes or converts a lock, and reports whether it is granted. A Flock of the same
// owner is dropped first in any case.
func (f *File) Try(s Space, l Lock) bool {
	if s == Flock {
		f.Unset(s, l.Owner, 0, EOF)
	}
	if f.Blocker(s, &l) != nil {
		return false
	}
	f.Held[s] = set(f.Held[s], l)
	return true
}

// Replaces reports whether a share reservation of an owner takes no room, since it is in place
// of another one.
func (f *File) Replaces(s Space, o Owner) bool {
	return s == Share && slices.ContainsFunc(f.Held[s], func(h Lock) bool { return h.Owner == o })
}

// Unset gives up what an owner holds of a range.
func (f *File) Unset(s Space, owner Owner, start, end uint64) {
	f.Held[s] = unset(f.Held[s], owner, start, end)
}

// UnsetClient gives up all that a client holds, but what is of the era keep (0: all), and
// reports whether that was anything.
func (f *File) UnsetClient(s Space, client string, keep uint32) bool {
	before := len(f.Held[s])
	f.Held[s] = slices.DeleteFunc(f.Held[s], func(h Lock) bool { return h.Before(client, keep) })
	return len(f.Held[s]) < before
}

// Leave drops all that a client has or waits for, but what is of the era keep (0: all).
func (f *File) Leave(client string, keep uint32) {
	for s := range f.Held {
		f.UnsetClient(Space(s), client, keep)
	}
	f.Waiting = slices.DeleteFunc(f.Waiting, func(w Waiter) bool { return w.Lock.Before(client, keep) })
}

// Before reports whether l is a client's and of another era than keep, or of any if that is 0.
func (l *Lock) Before(client string, keep uint32) bool {
	return l.Owner.Client == client && (keep == 0 || l.Era != keep)
}

// Splits reports whether Unset of the range of l would leave one more than before.
func (f *File) Splits(s Space, l *Lock) bool {
	return slices.ContainsFunc(f.Held[s], func(h Lock) bool { return h.Owner == l.Owner && h.Start < l.Start && h.End > l.End })
}

// Blocker returns the held lock with the lowest start that keeps l from being granted,
// or nil.
func (f *File) Blocker(s Space, l *Lock) *Lock { return firstBlocker(f.Held[s], l) }

// GrantNext grants the first of those that wait and can be granted, but for the spaces
// that are closed. It is called until it finds none, whenever something was released or
// weakened: a conversion may let an earlier one through. before is what the owner held of
// the range.
func (f *File) GrantNext(closed func(Space) bool) (w Waiter, before []Lock, ok bool) {
	for i := range f.Waiting {
		w = f.Waiting[i]
		if closed(w.Space) || f.Blocker(w.Space, &w.Lock) != nil {
			continue
		}
		f.Waiting = slices.Delete(f.Waiting, i, i+1)
		before = f.Owned(w.Space, &w.Lock)
		f.Held[w.Space] = set(f.Held[w.Space], w.Lock)
		return w, before, true
	}
	return Waiter{}, nil, false
}

// Owned returns what the owner of l has of its range.
func (f *File) Owned(s Space, l *Lock) (own []Lock) {
	for _, h := range f.Held[s] {
		if h.Owner == l.Owner && h.overlaps(l) {
			h.Start, h.End = max(h.Start, l.Start), min(h.End, l.End)
			own = append(own, h)
		}
	}
	return own
}

// Holds reports whether the owner of l has all of it, at least as its type.
func (f *File) Holds(s Space, l *Lock) bool {
	at := l.Start
	for at <= l.End {
		i := slices.IndexFunc(f.Held[s], func(h Lock) bool {
			return h.Owner == l.Owner && h.Type.covers(l.Type) && h.Start <= at && at <= h.End
		})
		if i < 0 {
			return false
		}
		at = f.Held[s][i].End + 1
	}
	return true
}

// Remove takes a waiter out of the queue and reports whether it was there.
func (f *File) Remove(ticket uint64) (w Waiter, ok bool) {
	i := slices.IndexFunc(f.Waiting, func(w Waiter) bool { return w.Ticket == ticket })
	if i < 0 {
		return Waiter{}, false
	}
	w = f.Waiting[i]
	f.Waiting = slices.Delete(f.Waiting, i, i+1)
	return w, true
}

// Len returns the number of held locks and waiting requests.
func (f *File) Len() int {
	return len(f.Held[Range]) + len(f.Held[Flock]) + len(f.Held[Share]) + len(f.Waiting)
}

// Of returns what a client holds in a space.
func (f *File) Of(s Space, client string) []Lock {
	own := make([]Lock, 0, len(f.Held[s]))
	for _, h := range f.Held[s] {
		if h.Owner.Client == client {
			own = append(own, h)
		}
	}
	return own
}

// Deadlocks reports whether an owner whose range l waits in f would wait for itself: some
// holder that blocks l waits, directly or not, for that owner. waits returns the files in
// which owners wait, maybe others, too.
func (f *File) Deadlocks(l *Lock, waits func(owners []Owner) ([]*File, error)) (bool, error) {
	seen := make(map[Owner]bool)
	for level := f.blockers(l, seen, nil); len(level) > 0; {
		files, err := waits(level)
		if err != nil {
			return false, err
		}
		of := make(map[Owner]bool, len(level))
		for _, o := range level {
			of[o] = true
		}
		var next []Owner
		for _, g := range files {
			for i := range g.Waiting {
				if w := &g.Waiting[i]; w.Space == Range && of[w.Lock.Owner] {
					next = g.blockers(&w.Lock, seen, next)
				}
			}
		}
		if seen[l.Owner] {
			return true, nil
		}
		level = next
	}
	return false, nil
}

// blockers appends the owners who keep l from being granted and were not seen before.
func (f *File) blockers(l *Lock, seen map[Owner]bool, list []Owner) []Owner {
	held := f.Held[Range]
	for i := range held {
		if o := held[i].Owner; held[i].blocks(l) && !seen[o] {
			seen[o] = true
			list = append(list, o)
		}
	}
	return list
}
