package httpapi

import "time"

// noticeAfter is how long, to twice as long, a request has run when the end of its
// client is looked for. Nearly all are answered by then, and a read that is ended
// with its request costs a system call and two timers.
const noticeAfter = 50 * time.Millisecond

// notice is the wait of the read that notices the end of a client. One timer, which
// goes on from one request to the next, spares each of them its own. What is in it
// is guarded by the mu of its lazyDeadline.
type notice struct {
	over    chan struct{} // holds one when the wait is over
	timer   *time.Timer
	ticks   bool // timer runs
	waiting bool
	old     bool // and did so when the timer last came
}

// starts begins a wait, unless there is one. Whoever began it receives from over.
func (n *notice) starts(tick func()) bool {
	if n.waiting {
		return false
	}
	n.waiting, n.old = true, false
	switch {
	case n.timer == nil:
		n.over = make(chan struct{}, 1)
		n.timer = time.AfterFunc(noticeAfter, tick)
	case !n.ticks:
		n.timer.Reset(noticeAfter)
	}
	n.ticks = true
	return true
}

// release ends the wait.
func (n *notice) release() {
	if n.waiting {
		n.waiting = false
		n.over <- struct{}{}
	}
}

// tick ends a wait that the timer met before.
func (d *lazyDeadline) tick() {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := &d.notice
	if n.waiting && !n.old {
		n.old = true
		n.timer.Reset(noticeAfter)
		return
	}
	n.ticks = false
	n.release()
}

// closes ends the wait of a connection that is closed.
func (d *lazyDeadline) closes() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.notice.release()
}
