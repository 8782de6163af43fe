package share

// Tally divides a number of units among clients who do not wait: whoever may not have
// what it asks for is refused. Its owner's mutex guards it, and its Parts.
type Tally[K comparable] struct {
	size, free, floor int64
	parts             map[K]*Part[K]
	spare             *Part[K] // one that went, for the next to come
}

// Part is what a client holds of a Tally.
type Part[K comparable] struct {
	key   K
	held  int64
	users int // of Join
}

// NewTally returns a Tally of size units, of which every client may hold floor as long
// as there are any.
func NewTally[K comparable](size, floor int64) *Tally[K] {
	return &Tally[K]{size: size, free: size, floor: floor, parts: make(map[K]*Part[K])}
}

// Join returns k's Part, for who takes and gives often. Leave must follow, after all
// was given back.
func (t *Tally[K]) Join(k K) *Part[K] {
	p := t.part(k)
	p.users++
	return p
}

// Leave ends one Join.
func (t *Tally[K]) Leave(p *Part[K]) {
	p.users--
	t.drop(p)
}

// Grow takes n units for p's client, and reports whether it may have them. Shrink must
// follow.
func (t *Tally[K]) Grow(p *Part[K], n int64) bool {
	if !may(n, p.held, t.free, t.floor) {
		return false
	}
	t.free -= n
	p.held += n
	return true
}

// Shrink gives back n units that p has.
func (t *Tally[K]) Shrink(p *Part[K], n int64) {
	t.free += n
	p.held -= n
}

// Take is Grow of a client who has not joined. Give must follow.
func (t *Tally[K]) Take(k K, n int64) bool {
	p := t.part(k)
	ok := t.Grow(p, n)
	t.drop(p)
	return ok
}

// Add takes n units even where none are free: for what is there already.
func (t *Tally[K]) Add(k K, n int64) {
	t.Shrink(t.part(k), -n)
}

// Give gives back n units that k has.
func (t *Tally[K]) Give(k K, n int64) {
	p := t.part(k)
	t.Shrink(p, n)
	t.drop(p)
}

// Held returns how many units are taken.
func (t *Tally[K]) Held() int64 { return t.size - t.free }

// part returns k's Part, a new one if it has none.
func (t *Tally[K]) part(k K) *Part[K] {
	p := t.parts[k]
	if p != nil {
		return p
	}
	if p = t.spare; p != nil {
		t.spare = nil
	} else {
		p = new(Part[K])
	}
	*p = Part[K]{key: k}
	t.parts[k] = p
	return p
}

// drop forgets a Part that nobody uses.
func (t *Tally[K]) drop(p *Part[K]) {
	if p.users == 0 && p.held <= 0 {
		delete(t.parts, p.key)
		t.spare = p
	}
}

// may is the rule: whether who holds some units may have n more of what is free.
func may[N int | int64](n, held, free, floor N) bool {
	held += n
	return n <= free && (held <= free || held <= floor)
}
