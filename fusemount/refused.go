package fusemount

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Refused is a superblock that cannot be served here: its programs wait. What
// they have open, locked and wrote is held for a server that can.
type Refused struct {
	Err  error
	Dirs []string // where it is mounted; empty if that is not known

	device, stop int           // /dev/fuse and the eventfd that ends keep; -1: there are none
	abandon      time.Duration // 0: it is kept for ever
	log          *slog.Logger
	give         func() error // to the Holder
	release      func()       // the rest

	gone chan struct{}
	mu   sync.Mutex // guards over, and the descriptors until then
	over bool
}

// start keeps the superblock until it ends.
func (r *Refused) start() {
	r.gone = make(chan struct{})
	if r.stop < 0 { // it is held as it is
		close(r.gone)
		return
	}
	go r.keep()
}

// hold gives it to its Holder again, unless it ended.
func (r *Refused) hold() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return nil
	}
	return r.give()
}

// End aborts the superblock: programs get errors.
func (r *Refused) End() {
	r.mu.Lock()
	if !r.over && r.stop >= 0 {
		_, _ = unix.Write(r.stop, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // cannot fail
	}
	r.mu.Unlock()
	<-r.gone
}

// Gone is closed when the superblock is, or may be.
func (r *Refused) Gone() <-chan struct{} { return r.gone }

// keep returns when the kernel ended the connection, or nobody waits any more.
func (r *Refused) keep() {
	defer close(r.gone)
	list := []unix.PollFd{{Fd: int32(r.device)}, {Fd: int32(r.stop), Events: unix.POLLIN}} // POLLERR is always reported
	wait := -1
	if r.abandon > 0 {
		wait = int(min(r.abandon, maxPoll).Milliseconds())
	}
	n, err := unix.Poll(list, wait)
	for errors.Is(err, unix.EINTR) {
		n, err = unix.Poll(list, wait)
	}
	if n == 0 && err == nil {
		r.log.Warn("a mount that cannot be served is given up", "dirs", r.Dirs, "abandon", r.abandon)
	}
	r.mu.Lock()
	r.over = true
	r.mu.Unlock()
	r.release()
}

// maxPoll is less than poll(2) takes.
const maxPoll = 24 * 24 * time.Hour
