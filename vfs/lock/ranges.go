package lock

// set makes [l.Start, l.End] of l.Owner locked with l.Type in held, which it
// returns. Whatever the owner held there is replaced, parts outside stay.
func set(held []Lock, l Lock) []Lock {
	held = unset(held, l.Owner, l.Start, l.End)
	// Merge with neighbours of the same owner, type and era: after unset, they
	// touch but do not overlap.
	kept := held[:0]
	for _, h := range held {
		if h.Owner == l.Owner && h.Type == l.Type && h.Era == l.Era {
			if h.End+1 == l.Start {
				l.Start = h.Start
				continue
			}
			if h.Start == l.End+1 {
				l.End = h.End
				continue
			}
		}
		kept = append(kept, h)
	}
	clear(held[len(kept):])
	return append(kept, l)
}

// unset removes [start, end] of owner from held, splitting a range that
// reaches over both ends.
func unset(held []Lock, owner Owner, start, end uint64) []Lock {
	var right Lock
	split := false
	kept := held[:0]
	for _, h := range held {
		switch {
		case h.Owner != owner || h.End < start || h.Start > end:
			kept = append(kept, h)
		case h.Start < start && h.End > end:
			right, split = h, true
			right.Start = end + 1
			h.End = start - 1
			kept = append(kept, h)
		case h.Start < start:
			h.End = start - 1
			kept = append(kept, h)
		case h.End > end:
			h.Start = end + 1
			kept = append(kept, h)
		}
	}
	clear(held[len(kept):])
	if split { // of one owner, only one range can reach over both ends
		kept = append(kept, right)
	}
	return kept
}

// firstBlocker returns the held lock with the lowest start that keeps l from
// being granted, or nil.
func firstBlocker(held []Lock, l *Lock) *Lock {
	var first *Lock
	for i := range held {
		if h := &held[i]; h.blocks(l) && (first == nil || h.Start < first.Start) {
			first = h
		}
	}
	return first
}
