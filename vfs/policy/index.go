package policy

import (
	"slices"
	"strings"
)

// index finds the statements of a document that can be about a resource: those with a
// pattern whose literal beginning is a prefix of it. It has each such literal once, in
// order. What stands between a prefix of a text and the text, in that order, begins
// with the prefix, too: so the last literal that is not behind the text, and what that
// one's parents are, are all that can be prefixes.
type index []indexEntry

type indexEntry struct {
	literal string
	parent  int // the longest literal that is a prefix of this one, -1 if none is
	// statements are numbers, in ascending order. One that any resource may be meant
	// by is found under "".
	statements []int
}

// newIndex indexes n statements, of which literals tells what the resources of one begin
// with.
func newIndex(n int, literals func(i int) []string) index {
	by := map[string][]int{}
	for i := range n {
		for _, literal := range literals(i) {
			if list := by[literal]; len(list) == 0 || list[len(list)-1] != i {
				by[literal] = append(list, i)
			}
		}
	}
	x := make(index, 0, len(by))
	for literal, numbers := range by {
		x = append(x, indexEntry{literal: literal, statements: numbers})
	}
	slices.SortFunc(x, func(a, b indexEntry) int { return strings.Compare(a.literal, b.literal) })
	for i := range x {
		parent := i - 1
		for parent >= 0 && !strings.HasPrefix(x[i].literal, x[parent].literal) {
			parent = x[parent].parent
		}
		x[i].parent = parent
	}
	return x
}

// last is the entry that a walk over those of a resource begins with, -1 for none.
func (x index) last(resource string) int {
	i, found := slices.BinarySearchFunc(x, resource, func(e indexEntry, s string) int { return strings.Compare(e.literal, s) })
	if !found {
		i--
	}
	return i
}
