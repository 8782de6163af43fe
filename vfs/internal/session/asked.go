package session

import "sync"

// asked are the purges for whose answers this process waits, by their numbers, of which the
// store may yet give one that is not certain to another one.
type asked struct {
	mu      sync.Mutex
	numbers map[uint64]int
}

func (a *asked) begin(number uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.numbers == nil {
		a.numbers = make(map[uint64]int)
	}
	a.numbers[number]++
}

// end ends what began, if anything did: there is no purge 0.
func (a *asked) end(number uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.numbers[number] > 1 {
		a.numbers[number]--
	} else {
		delete(a.numbers, number)
	}
}

func (a *asked) has(number uint64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.numbers[number] > 0
}
