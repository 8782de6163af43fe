package share

import "ogw/internal/subscriber"

// Tally divides a number of places by the rule of Pool among clients who do not
// wait: without a place they are refused. Its owner's mutex guards it.
type Tally struct {
	size  int
	floor int
	held  int // by all
	by    map[subscriber.Key]int
}

// NewTally returns a Tally of size places, of which every client may hold floor
// as long as there are any.
func NewTally(size, floor int) *Tally {
	return &Tally{size: size, floor: floor, by: make(map[subscriber.Key]int)}
}

// Take takes a place if the client may have one more.
func (t *Tally) Take(k subscriber.Key) bool {
	free, held := t.size-t.held, t.by[k]+1
	if free < 1 || held > free && held > t.floor {
		return false
	}
	t.Add(k)
	return true
}

// Add takes a place even where none is free: for what is there already.
func (t *Tally) Add(k subscriber.Key) {
	t.held++
	t.by[k]++
}

// Give gives a place back.
func (t *Tally) Give(k subscriber.Key) {
	t.held--
	if t.by[k]--; t.by[k] == 0 {
		delete(t.by, k)
	}
}

// Held returns the number of places that are taken.
func (t *Tally) Held() int { return t.held }
