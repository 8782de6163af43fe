package policy

import (
	"cmp"
	"slices"
	"strings"
)

// outline finds the statements of a document that can be about a request, from a few bytes
// for each: it has numbers and digests in place of texts. What it passes over is about
// something else for certain. What it finds may be, too, and is evaluated.
type outline struct {
	// What resources begin with, as literals: their digests, in order, with the statement of
	// each, and the lengths that literals have, in order.
	lengths  []uint16
	literals []digest
	numbers  []uint16
	kinds    []uint16    // of each statement: its place in sets, and denies
	sets     []actionSet // each once
	// The principals of each statement: 0 is whoever it may be, n are the names from n-1 on
	// to one with lastName. Without names there are no numbers.
	whom  []uint16
	names []digest
}

const (
	// denies is the bit of a kind that tells Deny from Allow.
	denies = 1 << 15
	// maxLiteral bounds the lengths: of a longer literal its beginning stands there.
	maxLiteral = 4 << 10
	// lastName is the bit of a name that ends the principals of statements.
	lastName digest = 1
)

// digest distinguishes texts, mostly (FNV-1a).
type digest uint32

const noText digest = 2166136261

// with is the digest of a text that s follows.
func (d digest) with(s string) digest {
	for i := range len(s) {
		d = (d ^ digest(s[i])) * 16777619
	}
	return d
}

// outlined is what is said of one statement.
type outlined struct {
	denies   bool
	actions  actionSet
	names    []string // principals; none: it may be about anybody
	literals []string // what the resources that it is about begin with
}

// newOutline is the outline of n statements.
func newOutline(n int, statement func(i int) outlined) *outline {
	o := &outline{kinds: make([]uint16, n), whom: make([]uint16, n)}
	sets, groups := map[actionSet]int{}, map[string]int{}
	var entries []outlineEntry
	for i := range n {
		s := statement(i)
		set, known := sets[s.actions]
		if !known {
			set = len(o.sets)
			sets[s.actions], o.sets = set, append(o.sets, s.actions)
		}
		if s.denies {
			set |= denies
		}
		o.kinds[i], o.whom[i] = uint16(set), uint16(o.group(groups, s.names))
		for _, literal := range s.literals {
			entries = append(entries, outlineEntry{o.literal(literal), uint16(i)})
		}
	}
	if len(o.names) == 0 {
		o.whom = nil
	}
	o.index(entries)
	return o
}

// group is the number of principals.
func (o *outline) group(known map[string]int, names []string) int {
	if len(names) == 0 {
		return 0
	}
	key := strings.Join(names, "\x00")
	if known[key] == 0 {
		known[key] = len(o.names) + 1
		for _, name := range names {
			o.names = append(o.names, noText.with(name)&^lastName)
		}
		o.names[len(o.names)-1] |= lastName
	}
	return known[key]
}

// literal is the digest of what a resource begins with, whose length it notes.
func (o *outline) literal(text string) digest {
	text = text[:min(len(text), maxLiteral)]
	if at, found := slices.BinarySearch(o.lengths, uint16(len(text))); !found {
		o.lengths = slices.Insert(o.lengths, at, uint16(len(text)))
	}
	return noText.with(text)
}

// outlineEntry is a literal of a statement.
type outlineEntry struct {
	literal digest
	number  uint16
}

func (o *outline) index(entries []outlineEntry) {
	slices.SortFunc(entries, func(a, b outlineEntry) int {
		return cmp.Or(cmp.Compare(a.literal, b.literal), cmp.Compare(a.number, b.number))
	})
	for _, e := range slices.Compact(entries) {
		o.literals, o.numbers = append(o.literals, e.literal), append(o.numbers, e.number)
	}
}

// walk goes over the statements that can be about a request.
type walk struct {
	*outline
	r      *Request
	action int  // number of the request's
	known  bool // whether it is one of S3's, which have numbers
	caller [3]digest
	n      int // the statement that it stands at

	length   int    // how many lengths were tried
	literal  digest // of what the resource begins with, of the length tried last
	from, to int    // what is left of the statements of that
	hashed   int
}

func (o *outline) walk(r *Request) (w walk) {
	w = walk{outline: o, r: r}
	w.action, w.known = actionNumbers[r.Action]
	w.literal = noText
	if len(o.names) > 0 {
		for i, name := range [...]string{r.Principal.ID, r.Principal.Name, r.Principal.Account} {
			w.caller[i] = noText.with(name) &^ lastName
		}
	}
	return w
}

// next moves on to a statement that can change what was decided, best by statement by.
// It reports whether there is one. A statement may come twice.
func (w *walk) next(best Effect, by int) bool {
	for {
		for w.from < w.to {
			w.n = int(w.numbers[w.from])
			w.from++
			if w.counts(best, by) && w.reaches() {
				return true
			}
		}
		if !w.lengthen() {
			return false
		}
	}
}

// lengthen finds the statements of a longer literal.
func (w *walk) lengthen() bool {
	if w.length == len(w.lengths) || int(w.lengths[w.length]) > len(w.r.Resource) {
		return false
	}
	end := int(w.lengths[w.length])
	w.length++
	w.literal = w.literal.with(w.r.Resource[w.hashed:end])
	w.hashed = end
	w.from, _ = slices.BinarySearch(w.literals, w.literal)
	for w.to = w.from; w.to < len(w.literals) && w.literals[w.to] == w.literal; w.to++ {
	}
	return true
}

// counts reports whether the statement is about the action, and its effect about the
// decision.
func (w *walk) counts(best Effect, by int) bool {
	kind, effect := w.kinds[w.n], Allow
	if kind&denies != 0 {
		effect = Deny
	}
	if effect < best || effect == best && w.n > by {
		return false
	}
	return !w.known || w.sets[kind&^denies].has(w.action)
}

// reaches reports whether the caller can be among those that the statement is about.
func (w *walk) reaches() bool {
	if w.whom == nil || w.whom[w.n] == 0 {
		return true
	}
	for _, name := range w.names[w.whom[w.n]-1:] {
		if is := name &^ lastName; is == w.caller[0] || is == w.caller[1] || is == w.caller[2] {
			return true
		}
		if name&lastName != 0 {
			return false
		}
	}
	return false
}
