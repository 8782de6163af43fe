package fusemount

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// request is the context of one request: it ends when the caller is killed.
// Other signals do not end a call, as on a local disk (locks aside, see
// callerWatch.wait): programs do not expect EINTR from a file.
//
// It costs an allocation and no more as long as nothing waits. What waits asks for
// Done, which puts the request among those whose callers are looked at (killWatch).
type request struct {
	context.Context // of the mount; never done
	watch           *killWatch
	waits           func(unique uint64) // called once something waits; nil: nobody listens
	interrupted     <-chan struct{}     // closed when the caller got a signal; it may also be lost
	tid             uint32              // 0: unknown
	unique          uint64

	killed atomic.Bool
	mu     sync.Mutex // guards done
	done   chan struct{}
}

// end forgets the request.
func (r *request) end() {
	r.mu.Lock()
	waited := r.done != nil
	r.mu.Unlock()
	if waited {
		r.watch.remove(r)
	}
}

// Done implements context.Context.
func (r *request) Done() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done == nil {
		r.done = make(chan struct{})
		r.watch.add(r)
		if r.waits != nil {
			r.waits(r.unique)
		}
	}
	return r.done
}

// Err implements context.Context.
func (r *request) Err() error {
	if r.killed.Load() {
		return context.Canceled
	}
	select {
	case <-r.interrupted:
		if callerKilled(r.tid) {
			r.kill()
			return context.Canceled
		}
	default:
	}
	return nil
}

// kill ends the context.
func (r *request) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.killed.Swap(true) && r.done != nil {
		close(r.done)
	}
}

// killWatch looks at the callers of requests that wait, with one goroutine for
// all of them and only while there are any. It does not rely on INTERRUPT, which
// can get lost and comes only for a caller's first signal. Its mu comes after
// request.mu.
type killWatch struct {
	mu      sync.Mutex
	waiting []*request
	running bool
}

func (w *killWatch) add(r *request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = append(w.waiting, r)
	if !w.running {
		w.running = true
		go w.run()
	}
}

func (w *killWatch) remove(r *request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(w.waiting, r); i >= 0 {
		last := len(w.waiting) - 1
		w.waiting[i] = w.waiting[last]
		w.waiting[last] = nil
		w.waiting = w.waiting[:last]
	}
}

// run ends when nothing waited for a while: most waits are short.
func (w *killWatch) run() {
	for idle := 0; ; {
		w.mu.Lock()
		list := slices.Clone(w.waiting)
		if idle++; len(list) > 0 {
			idle = 0
		}
		if idle > killIdle {
			w.running = false
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()
		for _, r := range list {
			if callerKilled(r.tid) {
				r.kill()
			}
		}
		time.Sleep(callerPause + time.Duration(len(list))*callerCost)
	}
}

// killIdle is how many rounds without a request killWatch stays.
const killIdle = 20

// callerKilled reports whether the thread has to end. A thread of another process
// namespace (0), or one that may not be looked at, goes on.
func callerKilled(tid uint32) bool {
	if tid == 0 {
		return false
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid))
	return err == nil && killPending(b)
}

// killPending reads the file status of a thread. Whatever signal ends a process,
// the kernel makes it SIGKILL for each of its threads.
func killPending(status []byte) bool {
	for lines := bufio.NewScanner(bytes.NewReader(status)); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), "SigPnd:"); ok {
			return signalMask(strings.TrimSpace(value))&(1<<(syscall.SIGKILL-1)) != 0
		}
	}
	return false
}
