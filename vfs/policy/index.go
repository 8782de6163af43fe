package policy

import (
	"maps"
	"slices"
	"strings"
)

// index finds the statements of a document that can be about a resource: those with a
// pattern whose literal beginning is a prefix of it. It has each such literal once, in
// order. What stands between a prefix of a text and the text, in that order, begins
// with the prefix, too: so the last literal that is not behind the text, and what that
// one's parents are, are all that can be prefixes.
type index struct {
	entries []indexEntry
	numbers []int32 // of statements, those of one entry together and in ascending order
}

// indexEntry is one literal. A statement that any resource may be meant by is found
// under "".
type indexEntry struct {
	literal  string
	parent   int32 // the longest literal that is a prefix of this one, -1 if none is
	from, to int32 // its numbers
}

// newIndex indexes n statements, of which literals says what the resources of one begin
// with.
func newIndex(n int, literals func(i int) []string) index {
	by := map[string][]int32{}
	for i := range n {
		for _, literal := range literals(i) {
			if list := by[literal]; len(list) == 0 || list[len(list)-1] != int32(i) {
				by[literal] = append(list, int32(i))
			}
		}
	}
	x := index{entries: make([]indexEntry, 0, len(by))}
	for i, literal := range slices.Sorted(maps.Keys(by)) {
		parent := int32(i) - 1
		for parent >= 0 && !strings.HasPrefix(literal, x.entries[parent].literal) {
			parent = x.entries[parent].parent
		}
		from := int32(len(x.numbers))
		x.numbers = append(x.numbers, by[literal]...)
		x.entries = append(x.entries, indexEntry{literal, parent, from, int32(len(x.numbers))})
	}
	return x
}

// statements are the numbers of those that entry at is a beginning of.
func (x *index) statements(at int32) []int32 { return x.numbers[x.entries[at].from:x.entries[at].to] }

// last is the entry that a walk over those of a resource begins with, -1 for none.
func (x *index) last(resource string) int32 {
	i, found := slices.BinarySearchFunc(x.entries, resource, func(e indexEntry, s string) int { return strings.Compare(e.literal, s) })
	if !found {
		i--
	}
	return int32(i)
}
