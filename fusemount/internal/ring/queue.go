package ring

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// spareThreads of a queue at least wait for requests, if there may be so many:
	// a thread is started when fewer do.
	spareThreads = 2
	// lockAdmission bounds how long a lock waits for the thread that it must leave
	// waiting for requests; then it is refused.
	lockAdmission = time.Second
)

// queue takes the requests of the programs that run on one CPU (see doc.go).
type queue struct {
	id          int
	home        *unix.CPUSet // where its threads run
	threads     atomic.Int32
	idle        atomic.Int32 // entries that hold no request
	begin       atomic.Int32 // threads that begin
	waits       atomic.Int32 // requests that may wait for others
	dispatching atomic.Bool  // a probe is about to come
	// full counts the moments since which requests may be queued; at the one that
	// clear has, it is known that none are.
	full, clear atomic.Uint64
}

func newQueue(id int) *queue {
	q := &queue{id: id, home: new(unix.CPUSet)}
	q.home.Set(id)
	return q
}

// mayHold reports whether the kernel may have queued requests.
func (q *queue) mayHold() bool { return q.full.Load() != q.clear.Load() }

// grow starts another thread for the queue. It returns false if there are too many.
func (r *Ring) grow(q *queue) bool {
	if int(r.count.Add(1)) > r.Threads {
		r.count.Add(-1)
		return false
	}
	if allThreads.Add(1) > maxAllThreads {
		r.ended()
		return false
	}
	q.begin.Add(1)
	r.threads.Go(func() {
		t, err := r.newThread(q)
		if err != nil { // the next request tries again
			q.begin.Add(-1)
			r.ended()
			r.complain("no thread for more requests at a time", err)
			return
		}
		t.run(func(err error) {
			q.begin.Add(-1)
			queued := q.mayHold()
			q.full.Add(1)
			if err == nil && (queued || q.waits.Load() > 0) {
				r.dispatch(q)
			}
		})
	})
	return true
}

// dispatch makes the kernel look at a queue: after the answer to a request that it
// sends there, it takes what is queued.
func (r *Ring) dispatch(q *queue) {
	if q.dispatching.Swap(true) {
		return // that one will do
	}
	go func() {
		if err := r.Probe(q.home, func() { q.dispatching.Store(false) }); err != nil {
			r.complain("a request may wait for the next one", err)
		}
	}()
}

// Waits comes before the request with a number, which is being answered, waits until the
// kernel knows of a change, which its kind does not tell: READs that the kernel may have
// queued behind it have to be answered.
func (r *Ring) Waits(unique uint64) {
	q := r.queueOf(unique)
	if q == nil {
		return // it came through /dev/fuse
	}
	if r.admit(q); q.mayHold() {
		r.dispatch(q)
	}
}

// queueOf returns the queue that a request came from, whose end ends its wait, too.
func (r *Ring) queueOf(unique uint64) *queue {
	r.mu.Lock()
	defer r.mu.Unlock()
	for e, q := range r.entries {
		if e.unique.Load() == unique {
			if !e.waits.Swap(true) {
				q.waits.Add(1)
			}
			return q
		}
	}
	return nil
}

// admit reports whether a request may wait for others: another thread of the queue
// waits for requests then, so that who unlocks gets through. It may have to be
// started, or to end what it does.
func (r *Ring) admit(q *queue) bool {
	for begin := time.Now(); q.idle.Load() <= 0; time.Sleep(time.Millisecond) {
		soon := q.begin.Load() > 0 || r.grow(q) || q.waits.Load() < q.threads.Load()
		if !soon || time.Since(begin) > lockAdmission {
			return false
		}
	}
	return true
}
