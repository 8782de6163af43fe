package coherence

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"ogw/cluster"
)

const (
	// maxLoans is how many loans there are at a time. What is read beyond that is not lent.
	maxLoans = 1 << 18
	// sweepEvery is the time between two looks for loans that have ended.
	sweepEvery = time.Second
)

// loans are what others than this client keep of what it read, who ask nobody while they do:
// until a lease ends, or what they have is recalled, which is before it changes. It is safe for
// concurrent use.
type loans struct {
	trust *Trust
	// until are the clocks at which the last loans of lines end.
	until []atomic.Int64
	// call has what numbers stand for given back; nil: nothing is lent.
	call atomic.Pointer[func(numbers []uint64)]

	// recalling is held until all is given back: who recalls what somebody else has recalled
	// already waits for that.
	recalling sync.Mutex

	mu    sync.Mutex // guards the rest; a leaf
	list  map[Line][]loan
	count int
	swept int64
}

// loan is what somebody keeps under a number until a clock.
type loan struct {
	number uint64
	end    int64
}

func newLoans(t *Trust) *loans {
	return &loans{trust: t, until: make([]atomic.Int64, lines), list: map[Line][]loan{}}
}

// lend returns for how long somebody may keep what was read of list since s.
func (l *loans) lend(s Stamp, number uint64, list []Line) time.Duration {
	now, end := int64(l.trust.clock()), l.trust.until.Load()
	left := time.Duration(end-now) - cluster.AnswerTime // it begins when the answer is there
	if l.call.Load() == nil || left <= 0 || !l.enter(number, list, now, end) {
		return 0
	}
	// Whoever changes a line begins that, and then looks for loans.
	for _, x := range list {
		if !l.trust.Holds(x, s) {
			return 0
		}
	}
	return left
}

// enter notes loans of list, and reports whether there was room for them.
func (l *loans) enter(number uint64, list []Line, now, end int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now-l.swept > int64(sweepEvery) {
		l.sweep(now)
	}
	if l.count+len(list) > maxLoans {
		return false
	}
	for _, x := range list {
		held := l.list[x]
		if i := slices.IndexFunc(held, func(h loan) bool { return h.number == number }); i >= 0 {
			held[i].end = max(held[i].end, end)
		} else {
			l.list[x] = append(held, loan{number, end})
			l.count++
		}
		l.until[x].Store(max(l.until[x].Load(), end))
	}
	return true
}

// sweep forgets what has ended. Under mu.
func (l *loans) sweep(now int64) {
	l.swept = now
	for x, held := range l.list {
		rest := slices.DeleteFunc(held, func(h loan) bool { return h.end < now })
		if l.count -= len(held) - len(rest); len(rest) == 0 {
			delete(l.list, x)
		} else {
			l.list[x] = rest
		}
	}
}

// recall returns when nobody keeps what was read of list. It comes after the begin of its change.
func (l *loans) recall(list []Line) {
	now := int64(l.trust.clock())
	if slices.ContainsFunc(list, func(x Line) bool { return l.until[x].Load() > now }) {
		l.giveBack(func() []uint64 { return l.take(list) })
	}
}

// recallAll returns when nobody keeps anything that was lent before.
func (l *loans) recallAll() { l.giveBack(l.takeAll) }

// lapse recalls everything if not all others tell: before they do again, since a machine that stood still, and
// with it the clock of who keeps something, may have that still; and when one has come that does not tell yet.
func (l *loans) lapse() {
	if !l.trust.Told() {
		l.recallAll()
	}
}

func (l *loans) giveBack(take func() []uint64) {
	l.recalling.Lock()
	defer l.recalling.Unlock()
	if numbers := take(); len(numbers) > 0 {
		(*l.call.Load())(numbers)
	}
}

// take ends the loans of list, and returns their numbers, each once.
func (l *loans) take(list []Line) (numbers []uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range list {
		numbers = l.end(numbers, x)
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

func (l *loans) takeAll() (numbers []uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for x := range l.list {
		numbers = l.end(numbers, x)
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

// end ends the loans of a line, and appends their numbers. Under mu.
func (l *loans) end(numbers []uint64, x Line) []uint64 {
	for _, h := range l.list[x] {
		numbers = append(numbers, h.number)
	}
	l.count -= len(l.list[x])
	delete(l.list, x)
	return numbers
}
