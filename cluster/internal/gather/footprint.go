package gather

import (
	"iter"
	"slices"
)

// Footprint is which keys the members of a batch read and write, where the server decides
// which of them hold before it writes any: then none may read what another one writes. What
// several set without having read it is what the last of them that holds sets, as if they went
// one after another.
type Footprint struct {
	keys    map[string]uses
	members int
}

// uses is what members do with a key.
type uses struct {
	read, deleted bool
	setters       []int // members, counted from 0, in their order
}

// Add adds what a member reads, sets and deletes, unless it depends on those that are there.
func (f *Footprint) Add(read, set, deleted []string) bool {
	if f.has(read, func(u uses) bool { return u.deleted || len(u.setters) > 0 }) ||
		f.has(set, func(u uses) bool { return u.read || u.deleted }) ||
		f.has(deleted, func(uses) bool { return true }) {
		return false
	}
	if f.keys == nil {
		f.keys = make(map[string]uses)
	}
	f.note(read, func(u *uses) { u.read = true })
	f.note(set, func(u *uses) { u.setters = append(u.setters, f.members) })
	f.note(deleted, func(u *uses) { u.deleted = true })
	f.members++
	return true
}

// has reports whether a use of one of keys is such.
func (f *Footprint) has(keys []string, such func(uses) bool) bool {
	return slices.ContainsFunc(keys, func(key string) bool {
		u, used := f.keys[key]
		return used && such(u)
	})
}

func (f *Footprint) note(keys []string, how func(*uses)) {
	for _, key := range keys {
		u := f.keys[key]
		how(&u)
		f.keys[key] = u
	}
}

// Shared reports whether several members set key.
func (f *Footprint) Shared(key string) bool { return len(f.keys[key].setters) > 1 }

// Superseded yields what members that hold set in vain: a later one that holds set it too.
func (f *Footprint) Superseded(holds func(member int) bool) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for key, u := range f.keys {
			later := false
			for _, m := range slices.Backward(u.setters) {
				if !holds(m) {
					continue
				}
				if later && !yield(m, key) {
					return
				}
				later = true
			}
		}
	}
}
