package fusemount

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxLoopThreads bounds the requests that are answered at a time, and with
	// them their buffers. A lock that is waited for has none.
	maxLoopThreads = 128
	// spareThreads are kept, with their buffers, for the next requests that wait.
	spareThreads = 8
	// turnTime is how often it is looked whether a request takes long. The next
	// one waits as long, twice at the most, if nobody knew that this one would.
	turnTime = time.Millisecond
	// quietTurns is for how many of these there must be no request until nobody
	// looks any more.
	quietTurns = 50
)

// turns has the threads of a loop read requests one at a time. Who read one keeps
// the turn while it answers, and reads the next, unless the turn is passed on
// meanwhile: that takes no other thread, whose waking costs more than most requests.
type turns struct {
	// state is the number of times that a request began or ended, or that the turn
	// of one was passed on: odd while whoever has the turn answers a request. So
	// the turn of a request is passed on, or kept at its end, by whoever changes
	// its number.
	state   atomic.Uint64
	now     atomic.Pointer[turn] // who has or had the turn of that number
	busy    atomic.Int32         // threads that answer, and are not known to wait
	limit   int32                // of those, until the turn is passed on only for who waits
	watched atomic.Bool
	start   func(*turn) // starts a thread, which has the turn

	mu     sync.Mutex
	all    []*turn
	parked []*turn
	vacant bool // nobody has the turn: all threads answer requests
	over   bool
	ended  chan struct{} // closed then
}

// turn is what a thread has of its turns.
type turn struct {
	mine   chan bool     // wakes a parked thread: the turn is its, or it is over
	unique atomic.Uint64 // the request that is being answered
	doing  atomic.Int32
	seen   uint64 // unique, when watch looked last
}

// What a thread does.
const (
	doesNothing = iota
	answers
	waits
)

func (t *turns) init(start func(*turn)) {
	t.start, t.limit, t.ended = start, int32(runtime.GOMAXPROCS(0)), make(chan struct{})
}

// first starts the first thread.
func (t *turns) first() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.give()
}

// give gives the turn, which nobody has, to a thread that is parked or a new one.
// mu is held.
func (t *turns) give() {
	switch n := len(t.parked); {
	case t.over:
	case n > 0:
		w := t.parked[n-1] // its caches are the warmest
		t.parked = t.parked[:n-1]
		w.mine <- true
	case len(t.all) < maxLoopThreads:
		w := &turn{mine: make(chan bool, 1)}
		t.all = append(t.all, w)
		t.start(w)
	default:
		t.vacant = true
	}
}

// begin is called by who has the turn, for the request that it read.
func (t *turns) begin(w *turn, unique uint64) (number uint64) {
	t.now.Store(w)
	number = t.state.Add(1)
	t.busy.Add(1)
	w.unique.Store(unique)
	w.doing.Store(answers) // from now on waits passes the turn on
	if !t.watched.Load() && t.watched.CompareAndSwap(false, true) {
		go t.watch()
	}
	return number
}

// waits records that the request w answers waits, or takes long.
func (t *turns) waits(w *turn) {
	if !w.doing.CompareAndSwap(answers, waits) {
		return
	}
	t.busy.Add(-1)
	if number := t.state.Load(); number%2 == 1 && t.now.Load() == w {
		t.pass(number)
	}
}

// requestWaits is waits, of who answers a request.
func (t *turns) requestWaits(unique uint64) {
	if w := t.now.Load(); w != nil && w.unique.Load() == unique {
		t.waits(w)
		return
	}
	t.mu.Lock()
	i := slices.IndexFunc(t.all, func(w *turn) bool { return w.unique.Load() == unique })
	var w *turn
	if i >= 0 {
		w = t.all[i]
	}
	t.mu.Unlock()
	if w != nil {
		t.waits(w)
	}
}

// pass passes the turn on, if its number is still the same.
func (t *turns) pass(number uint64) {
	if !t.state.CompareAndSwap(number, number+1) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.give()
}

// crowd passes the turn on while there are processors for more.
func (t *turns) crowd(number uint64) {
	if t.busy.Load() < t.limit {
		t.pass(number)
	}
}

// end ends the request of w, and returns when w has the turn; false, if no more
// requests are to be read, or w is not needed any more. waiting reports whether
// there are requests to be read.
func (t *turns) end(w *turn, number uint64, waiting func() bool) bool {
	w.unique.Store(0)
	if w.doing.Swap(doesNothing) == answers {
		t.busy.Add(-1)
	}
	if t.state.CompareAndSwap(number, number+1) {
		return true
	}
	// Who has the turn answers a request itself: take it away.
	if n := t.state.Load(); n%2 == 1 && waiting() && t.state.CompareAndSwap(n, n+1) {
		return true
	}
	t.mu.Lock()
	switch {
	case t.over || len(t.parked) >= spareThreads && !t.vacant:
		t.mu.Unlock()
		return false
	case t.vacant:
		t.vacant = false
		t.mu.Unlock()
		return true
	}
	t.parked = append(t.parked, w)
	t.mu.Unlock()
	return <-w.mine
}

// gone is called at the end of a thread.
func (t *turns) gone(w *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = slices.DeleteFunc(t.all, func(o *turn) bool { return o == w })
}

// stop is called by who has the turn when there are no more requests: all threads
// end.
func (t *turns) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	close(t.ended)
	for _, w := range t.parked {
		w.mine <- false
	}
	t.parked = nil
}

// uniques are the requests that are being answered.
func (t *turns) uniques() (list []uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.all {
		if u := w.unique.Load(); u != 0 {
			list = append(list, u)
		}
	}
	return list
}

// watch finds requests that take long, until there were none for a while.
func (t *turns) watch() {
	var was uint64
	var all []*turn
	for quiet := 0; quiet < quietTurns; quiet++ {
		time.Sleep(turnTime)
		t.mu.Lock()
		all = append(all[:0], t.all...)
		over := t.over
		t.mu.Unlock()
		if over {
			return // watched stays
		}
		if n := t.state.Load(); n != was {
			was, quiet = n, 0
		} else if n%2 == 1 {
			t.pass(n)
		}
		for _, w := range all {
			u := w.unique.Load()
			if u != 0 && w.seen == u {
				t.waits(w)
			}
			w.seen = u
		}
	}
	t.spare()
	t.watched.Store(false)
	if t.state.Load()%2 == 1 && t.watched.CompareAndSwap(false, true) {
		go t.watch() // a request began that saw that there is a watch
	}
}

// spare ends the threads that are parked, but for one.
func (t *turns) spare() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.parked) > 1 {
		t.parked[0].mine <- false
		t.parked = t.parked[1:]
	}
}
