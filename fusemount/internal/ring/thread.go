package ring

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"ogw/fusemount/internal/fuseabi"
	"ogw/fusemount/internal/uring"
)

// From include/uapi/linux/fuse.h.
const (
	cmdRegister       = 1 // FUSE_IO_URING_CMD_REGISTER
	cmdCommitAndFetch = 2 // FUSE_IO_URING_CMD_COMMIT_AND_FETCH
)

// memoryPause is the pause before the kernel is asked again for what it had no
// memory for.
const memoryPause = 10 * time.Millisecond

// command is struct fuse_uring_cmd_req.
type command struct {
	flags, commitID uint64
	queue           uint16
	_               [6]byte
}

// thread answers the requests of a queue, one at a time. Each has an entry of
// its own: what the kernel puts into an entry always has a thread that waits for it.
type thread struct {
	r       *Ring
	q       *queue
	u       *uring.Ring
	e       *entry
	command uring.Command
	// answered means that the kernel, when it takes the entry back, has looked at
	// its queue: it does not when the entry is registered.
	answered bool
}

func (r *Ring) newThread(q *queue) (*thread, error) {
	u, err := uring.New(1)
	if err != nil {
		return nil, err
	}
	e, err := newEntry()
	if err != nil {
		return nil, errors.Join(err, u.Close())
	}
	t := &thread{r: r, q: q, u: u, e: e}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries[e] = q
	return t, nil
}

// close is for a thread whose connection is gone, or that never ran: the kernel
// does not write to its memory.
func (t *thread) close() {
	t.r.mu.Lock()
	delete(t.r.entries, t.e)
	t.r.mu.Unlock()
	if err := errors.Join(t.u.Close(), unix.Munmap(t.e.memory)); err != nil {
		t.r.Logger.Error("releasing a thread of the io_uring", "err", err)
	}
}

// run registers the entry, reports that, and answers requests until the connection is
// gone. Its thread is its own, and ends with it: the kernel hands a request over
// on the thread that registered the entry or answered last.
func (t *thread) run(registered func(error)) {
	runtime.LockOSThread()
	defer t.r.ended()
	t.q.threads.Add(1)
	defer t.q.threads.Add(-1)
	setAffinity(t.q.home)
	err := t.register()
	registered(err)
	for err == nil {
		err = t.next()
	}
	t.q.idle.Add(-1)
	if isGone(err) {
		t.close()
		return
	}
	// The kernel may know the memory still: it stays.
	t.r.Logger.Error("a thread of the io_uring ended", "err", err)
}

// queue prepares a command for the entry.
func (t *thread) queue(op uint32, vectors *[2]unix.Iovec, commit uint64) {
	t.command = uring.Command{FD: t.r.fd, Op: op}
	if vectors != nil {
		t.command.Addr, t.command.Len = unsafe.Pointer(vectors), uint32(len(vectors))
	}
	*(*command)(unsafe.Pointer(&t.command.Body)) = command{commitID: commit, queue: uint16(t.q.id)}
	t.u.Queue(&t.command)
}

func (t *thread) register() error {
	t.q.idle.Add(1)
	t.queue(cmdRegister, t.e.vectors(), 0)
	if err := t.enter(0); err != nil {
		return err
	}
	if _, res, ok := t.u.Peek(); ok && res < 0 { // else it is the first request
		return fmt.Errorf("register: %w", syscall.Errno(-res))
	}
	return nil
}

// enter is the io_uring's, but waits for memory that the kernel lacks.
func (t *thread) enter(wait int) error {
	for {
		err := t.u.Enter(wait)
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.ENOMEM) {
			return err
		}
		t.r.complain("the kernel has no memory for an answer", err)
		time.Sleep(memoryPause)
	}
}

// next hands over the answer to the last request, waits for another and answers
// it. On an error the entry holds none.
func (t *thread) next() error {
	if err := t.wait(); err != nil {
		return err
	}
	_, res, ok := t.u.Next()
	switch {
	case !ok:
		return nil
	case res < 0:
		return syscall.Errno(-res)
	}
	idle := t.q.idle.Add(-1)
	if idle == 0 {
		t.q.full.Add(1)
	}
	if idle+t.q.begin.Load() < spareThreads {
		t.r.grow(t.q)
	}
	roams := t.e.large()
	if roams {
		setAffinity(t.r.cpus.allowed)
	}
	commit := t.e.header.commitID
	t.answer()
	t.q.idle.Add(1)
	t.queue(cmdCommitAndFetch, nil, commit)
	t.answered = true
	if roams {
		err := t.enter(0) // with the copy of what was read
		setAffinity(t.q.home)
		return err
	}
	return nil
}

// wait hands over the answer and waits for the next request.
func (t *thread) wait() error {
	if full := t.q.full.Load(); t.answered && full != t.q.clear.Load() {
		if err := t.enter(0); err != nil {
			return err
		}
		if _, _, ok := t.u.Peek(); !ok {
			t.q.clear.Store(full) // else the kernel had given the next of its queue
		}
	}
	return t.enter(1)
}

// answer replaces the request in the entry by its answer.
func (t *thread) answer() {
	e, h := t.e, *t.e.inHeader()
	locks := e.mayLock()
	waits := locks || fuseabi.MayTell(h.Opcode) && t.r.Several()
	if waits {
		t.q.waits.Add(1)
		defer t.q.waits.Add(-1)
	}
	in := e.request()
	switch {
	case in == nil:
		t.r.Logger.Error("the kernel sent a request that is none", "operation", h.Opcode, "length", h.Length)
		e.fail(h.Unique, syscall.EIO)
		return
	case waits && !t.r.admit(t.q) && locks:
		e.fail(h.Unique, syscall.ENOLCK)
		return
	case waits && t.q.mayHold():
		t.r.dispatch(t.q)
	}
	e.unique.Store(h.Unique)
	n, _ := t.r.proto.HandleRequest(in, e.out[:])
	e.unique.Store(0)
	if e.waits.Swap(false) {
		t.q.waits.Add(-1)
	}
	if n < fuseabi.OutHeaderSize {
		e.fail(h.Unique, syscall.EIO) // go-fuse logged why
		return
	}
	e.header.payloadSize = uint32(n - fuseabi.OutHeaderSize)
}
