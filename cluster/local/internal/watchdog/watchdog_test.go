package watchdog

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// result is what Do returned, and when.
type result struct {
	ended <-chan struct{}
	err   error
	took  time.Duration
}

// do calls Do with an operation that lasts until release is closed.
func do(w *Watchdog, release <-chan struct{}) <-chan result {
	done := make(chan result, 1)
	began := time.Now()
	go func() {
		_, ended, err := Do(w, func() (int, error) {
			<-release
			return 0, nil
		})
		done <- result{ended, err, time.Since(began)}
	}()
	return done
}

func quick(t *testing.T, w *Watchdog, want error) {
	t.Helper()
	began := time.Now()
	if err := w.Run(func() error { return nil }); !errors.Is(err, want) || time.Since(began) > 0 {
		t.Errorf("an operation: %v after %v, want %v", err, time.Since(began), want)
	}
}

// TestHang: who began before the disk was slow waits for it, all others are freed at the limit, and
// what comes then at once, until it answers.
func TestHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(slog.New(slog.DiscardHandler), func() bool { return false })
		var woken atomic.Int32
		w.OnHang(func() { woken.Add(1) })
		release := make(chan struct{})
		first := do(w, release)
		time.Sleep(3 * tick)
		second := do(w, release)
		quick(t, w, nil)

		r := <-second
		if !errors.Is(r.err, ErrHangs) || r.ended == nil || r.took > Limit {
			t.Errorf("the second operation: %v after %v, goes on: %v", r.err, r.took, r.ended != nil)
		}
		synctest.Wait()
		if woken.Load() != 1 || w.Err() == nil {
			t.Errorf("woken %d times, %v", woken.Load(), w.Err())
		}
		quick(t, w, ErrHangs)
		time.Sleep(time.Hour)
		quick(t, w, ErrHangs)

		close(release)
		<-r.ended
		if r := <-first; r.err != nil {
			t.Errorf("the first operation: %v", r.err)
		}
		time.Sleep(3 * tick)
		if w.Err() != nil || w.Slow() {
			t.Errorf("after it: %v, slow: %v", w.Err(), w.Slow())
		}
		quick(t, w, nil)
		synctest.Wait()

		release = make(chan struct{})
		do(w, release)
		time.Sleep(3 * tick)
		again := do(w, release)
		if r := <-again; !errors.Is(r.err, ErrHangs) {
			t.Errorf("it hangs again: %v", r.err)
		}
		close(release)
	})
}

// gateHandler is the handler of a log that is written once its gate is open.
type gateHandler struct {
	slog.Handler
	gate <-chan struct{}
}

func (h gateHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h gateHandler) Handle(context.Context, slog.Record) error {
	<-h.gate
	return nil
}

// TestAnswersAtOnce: the disk is found well whenever the last operation ends, also in the moment in
// which it begins to hang, and whether or not the log can be written meanwhile.
func TestAnswersAtOnce(t *testing.T) {
	for _, test := range []struct {
		name          string
		wakes, logged bool // the operation ends because the disk hangs; the log can be written
	}{
		{"woken", true, true},
		{"the log is on the disk", false, false},
		{"woken, the log is on the disk", true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release, gate := make(chan struct{}), make(chan struct{})
				open := sync.OnceFunc(func() { close(gate) })
				defer open()
				if test.logged {
					open()
				}
				w := New(slog.New(gateHandler{slog.DiscardHandler, gate}), func() bool { return false })
				w.OnHang(func() {
					if test.wakes {
						close(release)
						synctest.Wait() // it has ended
					}
				})
				first := do(w, release)
				time.Sleep(3 * tick)
				second := do(w, release)
				time.Sleep(Limit + tick/2)
				select {
				case <-second:
				default:
					t.Error("the second operation waits")
				}
				if !test.wakes {
					quick(t, w, ErrHangs)
					close(release)
				}
				<-first
				time.Sleep(3 * tick)
				quick(t, w, nil)
				open()
				time.Sleep(2 * tick)
				if w.ticking.Load() {
					t.Error("it is looked at")
				}
			})
		})
	}
}

// TestBusy: operations that take their time one after the other are no disk that hangs, nor is a disk
// that is full.
func TestBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var full atomic.Bool
		w := New(slog.New(slog.DiscardHandler), full.Load)
		busy := func() {
			for range 10 {
				release := make(chan struct{})
				time.AfterFunc(Limit/2, func() { close(release) })
				one := do(w, release)
				time.Sleep(Limit / 4)
				if r := <-one; r.err != nil {
					t.Errorf("after %v: %v", r.took, r.err)
				}
			}
		}
		busy()
		full.Store(true)
		release := make(chan struct{})
		first := do(w, release)
		time.Sleep(2 * Limit)
		if w.Err() != nil {
			t.Errorf("full: %v", w.Err())
		}
		close(release)
		<-first
	})
}

// TestIdle: nothing looks at a disk that nobody waits for.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(slog.New(slog.DiscardHandler), func() bool { return false })
		quick(t, w, nil)
		time.Sleep(2 * tick)
		if w.ticking.Load() {
			t.Error("it is looked at")
		}
	})
}

func BenchmarkDo(b *testing.B) {
	w := New(slog.New(slog.DiscardHandler), func() bool { return false })
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			_ = w.Run(func() error { return nil })
		}
	})
}
