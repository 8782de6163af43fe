// Package watchdog bounds how long callers wait for a disk that neither does what it was told
// nor fails.
//
// An operation that waits for the disk is counted in one of two generations, which costs it two
// atomic additions. As long as some are under way, a timer looks every tick: when the older
// generation has none left, the newer one becomes the older. If there is one that has lasted a
// tick, the disk is slow, and operations that begin then have a goroutine each, so that their
// callers can be freed: for all of them it would cost a lone sync a fifth of its rate. When it
// has lasted for the limit, the disk hangs: these callers get ErrHangs, and so do those of new
// operations, at once, until it has ended. Who began within the first tick waits for the disk.
//
// Ticks are counted, not time: what passes while the process is stopped is not the disk's.
package watchdog

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"ogw/cluster"
)

const (
	// Limit is how long a disk may take: longer than one takes that is busy or goes over to another
	// path, and less than what clients wait. An operation that begins while another one lasts may
	// wait twice as long.
	Limit = 30 * time.Second
	// tick is how often it is looked at.
	tick = 100 * time.Millisecond
)

// ErrHangs means that the disk does not answer. What was to be written may be there later.
var ErrHangs = fmt.Errorf("%w: the disk does not answer", cluster.ErrUnavailable)

// Watchdog watches the operations of one disk. It is safe for concurrent use.
type Watchdog struct {
	log    *slog.Logger
	limit  time.Duration
	paused func() bool
	onHang func()

	generation atomic.Uint32 // the newer one, modulo 2
	running    [2]atomic.Int64
	ticking    atomic.Bool
	slow       atomic.Bool
	hung       atomic.Pointer[chan struct{}] // closed while the disk hangs

	ticks int // that the older generation has lasted; of look
}

// New returns the watchdog of a disk that is well. While paused reports true, the disk is not to
// blame for what lasts.
func New(log *slog.Logger, paused func() bool) *Watchdog {
	w := &Watchdog{log: log, limit: Limit, paused: paused, onHang: func() {}}
	hung := make(chan struct{})
	w.hung.Store(&hung)
	return w
}

// SetLimit changes Limit, for tests. It is called before the first use.
func (w *Watchdog) SetLimit(d time.Duration) { w.limit = d }

// OnHang has f called whenever the disk begins to hang. It is called before the first use.
func (w *Watchdog) OnHang(f func()) { w.onHang = f }

// Err returns ErrHangs while the disk hangs.
func (w *Watchdog) Err() error {
	select {
	case <-*w.hung.Load():
		return ErrHangs
	default:
		return nil
	}
}

// Slow reports whether an operation has lasted for a tick.
func (w *Watchdog) Slow() bool { return w.slow.Load() }

// Do returns what op returns, which waits for the disk, or ErrHangs. If op goes on all the same,
// ended is closed when it has ended; else it is nil.
func Do[T any](w *Watchdog, op func() (T, error)) (value T, ended <-chan struct{}, err error) {
	if w.slow.Load() {
		return wait(w, op)
	}
	n := w.begin()
	defer n.Add(-1)
	value, err = op()
	return value, nil, err
}

// Run is Do for what returns nothing else.
func (w *Watchdog) Run(op func() error) error {
	_, _, err := Do(w, func() (none struct{}, err error) { return none, op() })
	return err
}

// wait is Do with a goroutine for op.
func wait[T any](w *Watchdog, op func() (T, error)) (none T, ended <-chan struct{}, err error) {
	hung := *w.hung.Load()
	select {
	case <-hung:
		return none, nil, ErrHangs
	default:
	}
	var value T
	var failure error
	done := make(chan struct{})
	n := w.begin()
	go func() {
		defer close(done)
		defer n.Add(-1)
		value, failure = op()
	}()
	select {
	case <-done:
		return value, nil, failure
	case <-hung:
		return none, done, ErrHangs
	}
}

// begin counts an operation, and returns where its end is to be counted.
func (w *Watchdog) begin() *atomic.Int64 {
	n := &w.running[w.generation.Load()&1]
	n.Add(1)
	if !w.ticking.Load() && w.ticking.CompareAndSwap(false, true) {
		time.AfterFunc(tick, w.look)
	}
	return n
}

// look judges the disk once a tick, until nothing is under way and the disk is well. While it
// hangs nothing begins that would have somebody look again.
func (w *Watchdog) look() {
	generation := w.generation.Load()
	switch lasts := w.running[(generation+1)&1].Load() > 0; {
	case lasts && w.paused():
	case lasts:
		w.slow.Store(true)
		if w.ticks++; w.ticks == int(w.limit/tick) {
			w.hang()
		}
	default:
		if w.Err() != nil {
			w.answered()
		}
		w.ticks = 0
		w.slow.Store(false)
		w.generation.Store(generation + 1)
	}
	if w.idle() && !w.slow.Load() {
		w.ticking.Store(false)
		if w.idle() || !w.ticking.CompareAndSwap(false, true) {
			return
		}
	}
	time.AfterFunc(tick, w.look)
}

func (w *Watchdog) idle() bool { return w.running[0].Load()+w.running[1].Load() == 0 }

// hang frees who waits. Nothing here waits for the log, which may be on the same disk.
func (w *Watchdog) hang() {
	close(*w.hung.Load())
	w.onHang()
	go w.log.Error("the disk does not answer, writes are refused", "after", w.limit)
}

func (w *Watchdog) answered() {
	hung := make(chan struct{})
	w.hung.Store(&hung)
	go w.log.Info("the disk answers again")
}
