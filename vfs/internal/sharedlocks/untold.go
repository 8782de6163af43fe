package sharedlocks

import (
	"cmp"
	"slices"

	"ogw/vfs/internal/record"
	"ogw/vfs/lock"
)

// maxUntold bounds the grants of one owner, in a file, that it may not know of: the threads of a
// process. What is more, older first, is not given up when it is cancelled.
const maxUntold = 64

// noteGranted notes a grant to a remote client that it has yet to be told of, unless it holds some of
// the range that it knows of (before is what it held): then it is taken to know.
func noteGranted(f *record.FileLocks, space lock.Space, l *lock.Lock, ticket uint64, before []lock.Lock) (untold bool) {
	h := f.Holders[l.Owner]
	known := lock.File{}
	known.Held[space] = slices.Clone(before)
	for _, u := range h.Untold {
		if u.Space == space {
			known.Unset(space, l.Owner, u.Start, u.End)
		}
	}
	if len(known.Held[space]) > 0 {
		noteTold(f, space, l)
		return false
	}
	h.Untold = append(slices.Clone(h.Untold), record.UntoldGrant{Ticket: ticket, Space: space, Start: l.Start, End: l.End})
	h.Untold = h.Untold[max(0, len(h.Untold)-maxUntold):]
	f.Holders[l.Owner] = h
	return true
}

// noteTold notes that a remote client knows of what it has of a range, whatever it was granted by.
func noteTold(f *record.FileLocks, space lock.Space, l *lock.Lock) {
	if h, ok := f.Holders[l.Owner]; ok && len(h.Untold) > 0 {
		h.Untold = slices.DeleteFunc(slices.Clone(h.Untold), func(u record.UntoldGrant) bool {
			return u.Space == space && u.Start <= l.End && l.Start <= u.End
		})
		f.Holders[l.Owner] = h
	}
}

// noteKnown notes that the owners that are chosen know of all that they have.
func noteKnown(f *record.FileLocks, chosen func(lock.Owner) bool) {
	for o, h := range f.Holders {
		if chosen(o) {
			h.Untold = nil
			f.Holders[o] = h
		}
	}
}

// encodeWithin is Encode, where there is no room without what is untold: that must not keep somebody from
// unlocking.
func encodeWithin(f *record.FileLocks, room int) []byte {
	b := f.Encode()
	if len(b) > room {
		noteKnown(f, func(lock.Owner) bool { return true })
		b = f.Encode()
	}
	return b
}

// takeBack forgets a grant to a remote client, and reports whether it may not know of that. others are
// those of the space that it may not know of either.
func takeBack(f *record.FileLocks, space lock.Space, o lock.Owner, ticket uint64) (others []waited, untold bool) {
	h := f.Holders[o]
	i := slices.IndexFunc(h.Untold, func(u record.UntoldGrant) bool { return u.Ticket == ticket })
	if i < 0 {
		return nil, false
	}
	h.Untold = slices.Delete(slices.Clone(h.Untold), i, i+1)
	f.Holders[o] = h
	for _, u := range h.Untold {
		if u.Space == space {
			others = append(others, waited{u.Ticket, u.Start, u.End})
		}
	}
	return others, true
}

// unsetBut gives up the range of l but for what is in keep.
func unsetBut(f *record.FileLocks, space lock.Space, l *lock.Lock, keep []waited) {
	o, start, end := l.Owner, l.Start, l.End
	slices.SortFunc(keep, byStart)
	for _, w := range keep {
		if w.start > end || w.end < start {
			continue
		}
		if w.start > start {
			f.Unset(space, o, start, w.start-1)
		}
		if w.end >= end {
			return
		}
		start = w.end + 1
	}
	f.Unset(space, o, start, end)
}

// waited is the range of a request.
type waited struct {
	ticket, start, end uint64
}

func byStart(a, b waited) int { return cmp.Compare(a.start, b.start) }
