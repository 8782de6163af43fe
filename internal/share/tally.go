package share

// Tally divides a number of units among clients who do not wait: whoever may not have
// what it asks for is refused. Its owner's mutex guards it.
type Tally[K comparable] struct {
	size, free, floor int64
	held              map[K]int64
}

// NewTally returns a Tally of size units, of which every client may hold floor as long
// as there are any.
func NewTally[K comparable](size, floor int64) *Tally[K] {
	return &Tally[K]{size: size, free: size, floor: floor, held: make(map[K]int64)}
}

// Take takes n units for k, and reports whether it may have them. Give must follow.
func (t *Tally[K]) Take(k K, n int64) bool {
	if !may(n, t.held[k], t.free, t.floor) {
		return false
	}
	t.Add(k, n)
	return true
}

// Add takes n units even where none are free: for what is there already.
func (t *Tally[K]) Add(k K, n int64) {
	t.free -= n
	t.held[k] += n
}

// Give gives back n units that k has.
func (t *Tally[K]) Give(k K, n int64) {
	t.free += n
	if t.held[k] -= n; t.held[k] <= 0 {
		delete(t.held, k)
	}
}

// Held returns how many units are taken.
func (t *Tally[K]) Held() int64 { return t.size - t.free }

// may is the rule: whether who holds some units may have n more of what is free.
func may[N int | int64](n, held, free, floor N) bool {
	held += n
	return n <= free && (held <= free || held <= floor)
}
