package fusemount

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"ogw/fusemount/internal/fuseabi"
	"ogw/fusemount/notifier"
)

const (
	// Where things stand in a buffer: the request so that what is written begins
	// at a page; an answer behind the structure of a request for bytes, which has
	// nothing else, so that what is read begins at a page; any other behind the
	// longest request. It is as long as an attribute or a link can be.
	requestAt      = 4096 - 80
	readAnswerAt   = 2*4096 - 16
	answerAt       = 4096 + maxRequestBytes
	maxAnswerBytes = 68 << 10
	loopBuffer     = answerAt + maxAnswerBytes
	// leaveWait bounds how long leaving waits for requests that are being
	// answered. What is not answered then, the next server is sent again, if the
	// kernel can do that; else it is answered as long as this process lives.
	leaveWait = 10 * time.Second
	// largeBytes is the size from which a READ or WRITE takes long enough for
	// another thread to be woken for the next request.
	largeBytes = 64 << 10
	// endPause is the pause before requests that do not end are interrupted again.
	endPause = 10 * time.Millisecond
	// memoryPause is the pause before the kernel is asked again for memory that it
	// had not.
	memoryPause = 10 * time.Millisecond

	// resentBit marks the number of a request that is sent again
	// (FUSE_UNIQUE_RESEND).
	resentBit = 1 << 63
)

// loop serves a connection through /dev/fuse in place of go-fuse's server: its
// threads take turns (turns), and it can stop reading while the connection lives
// on.
type loop struct {
	f     *rawFS
	fd    int
	proto *fuseabi.Server

	stop    int // eventfd that ends the wait for requests, once it was written to
	turns   turns
	started atomic.Bool
	fate    atomic.Int32
	running sync.WaitGroup // threads
	locks   sync.WaitGroup // requests that may wait for locks

	mu      sync.Mutex
	waiting map[uint64]struct{} // requests that may wait for locks
	ended   bool

	leaving time.Duration // leaveWait
	resends bool          // the kernel sends again what is not answered
	silent  atomic.Bool   // what is answered now would be that this server ends

	life   sync.RWMutex // held while fd is used for what is no answer
	closed bool         // guarded by life

	apart apart
}

// What becomes of a loop.
const (
	fateServed = iota
	fateLeft   // its connection is left to the next server
	fateGone   // its connection is gone
)

// newLoop takes fd over, unless it fails.
func newLoop(f *rawFS, fd int, api fuse.RawFileSystem, opt *fuse.MountOptions) (*loop, error) {
	// The holder has the same open file. It does not read, and the next server
	// does this too.
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, fmt.Errorf("/dev/fuse: %w", err)
	}
	stop, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	p := &loop{f: f, fd: fd, stop: stop, proto: fuseabi.NewServer(api, opt, f.answerTime()), waiting: make(map[uint64]struct{}), leaving: leaveWait}
	f.waits = p.turns.requestWaits
	p.turns.init(func(w *turn) { p.running.Go(func() { p.run(w) }) })
	p.apart.start, p.apart.send, p.apart.log = p.startNotifier, p.send, f.opt.Logger
	return p, nil
}

// close comes when all threads are gone.
func (p *loop) close() {
	p.life.Lock()
	p.closed = true // nobody uses fd from here on
	p.life.Unlock()
	p.apart.close() // its lock comes before life
	unix.Close(p.stop)
	unix.Close(p.fd)
}

// requestMemory is memory for a request and its answer. Of a superblock that
// survives, it is there and stays: the kernel answers EIO to a caller whose request
// it could not copy when the server was killed.
func (p *loop) requestMemory() (b []byte, err error) {
	flags := unix.MAP_PRIVATE | unix.MAP_ANONYMOUS
	if p.f.opt.Holder == nil {
		b, err = unix.Mmap(-1, 0, loopBuffer, unix.PROT_READ|unix.PROT_WRITE, flags)
	} else {
		flags |= unix.MAP_POPULATE
		b, err = unix.Mmap(-1, 0, loopBuffer, unix.PROT_READ|unix.PROT_WRITE, flags|unix.MAP_LOCKED)
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EPERM) { // RLIMIT_MEMLOCK
			b, err = unix.Mmap(-1, 0, loopBuffer, unix.PROT_READ|unix.PROT_WRITE, flags)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("memory for a request: %w", err)
	}
	return b, nil
}

// read returns the next request, in b; nil at the end of the connection, or when
// the loop leaves it.
func (p *loop) read(b []byte) []byte {
	for {
		n, err := rawRead(p.fd, b[requestAt:answerAt])
		switch {
		case err == 0 && n >= fuseabi.InHeaderSize:
			return b[requestAt : requestAt+n]
		case err == unix.EAGAIN:
			if !p.await() {
				return nil
			}
			continue
		case err == unix.EINTR, err == unix.ENOENT:
			continue
		case err != unix.ENODEV && err != unix.ECONNABORTED:
			p.f.opt.Logger.Error("reading /dev/fuse", "device", p.f.conn.number(), "bytes", n, "err", err)
		}
		return nil
	}
}

// rawRead and rawWrite are read(2) and write(2) of a descriptor that never waits:
// the Go scheduler does not notice.
func rawRead(fd int, b []byte) (n int, err syscall.Errno) {
	r, _, err := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	return int(r), err
}

func rawWrite(fd int, b []byte) syscall.Errno {
	_, _, err := unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	return err
}

// longWrite is write(2) that takes long enough for the scheduler to know.
func longWrite(fd int, b []byte) syscall.Errno {
	_, _, err := unix.Syscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	return err
}

// requestsWait reports whether there are requests to be read.
func (p *loop) requestsWait() bool {
	list := [...]unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}
	n, _, err := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&list)), uintptr(len(list)), uintptr(unsafe.Pointer(&noTime)), 0, 0, 0)
	return err == 0 && n > 0 && list[0].Revents&unix.POLLIN != 0
}

var noTime unix.Timespec

// tellStop ends all waits for requests.
func (p *loop) tellStop() {
	_, _ = unix.Write(p.stop, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // cannot fail
}

// await returns when there may be a request; false, if the loop leaves.
func (p *loop) await() bool {
	list := [...]unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}, {Fd: int32(p.stop), Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(list[:], -1)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			p.f.opt.Logger.Error("waiting for requests", "device", p.f.conn.number(), "err", err)
			return false
		}
		return list[1].Revents == 0
	}
}

// start reads requests until the connection ends or leave is called.
func (p *loop) start() {
	p.started.Store(true)
	p.turns.first()
}

// run is one thread, which has the turn.
func (p *loop) run(w *turn) {
	defer p.turns.gone(w)
	b, err := p.requestMemory()
	for ; err != nil; b, err = p.requestMemory() {
		p.f.opt.Logger.Error("no memory for requests", "device", p.f.conn.number(), "err", err)
		time.Sleep(memoryPause)
	}
	defer func() { _ = unix.Munmap(b) }() // ours
	for p.fate.Load() == fateServed {
		in := p.read(b)
		if in == nil {
			break
		}
		h := (*fuse.InHeader)(unsafe.Pointer(&in[0]))
		number := p.turns.begin(w, h.Unique)
		if p.mayWait(in) {
			p.turns.waits(w)
		} else if p.requestsWait() {
			p.turns.crowd(number)
		}
		p.answer(b, in)
		if !p.turns.end(w, number, p.requestsWait) {
			return
		}
	}
	p.turns.stop()
}

// mayWait reports whether a request may wait, or takes long.
func (p *loop) mayWait(in []byte) bool {
	switch h := (*fuse.InHeader)(unsafe.Pointer(&in[0])); h.Opcode {
	case fuseabi.OpFsync, fuseabi.OpFallocate, fuseabi.OpCopyFileRange:
		return true
	case fuseabi.OpRead:
		return (*fuseabi.ReadIn)(unsafe.Pointer(&in[fuseabi.InHeaderSize])).Size >= largeBytes
	case fuseabi.OpForget, fuseabi.OpBatchForget: // it asks nobody, but 4,000 inodes take long
		return len(in) >= largeBytes
	default: // beside others, each asks the store
		return p.f.beside || len(in) >= largeBytes || p.f.conn.several() && fuseabi.MayTell(h.Opcode)
	}
}

// answer answers the request in, which is in b.
func (p *loop) answer(b, in []byte) {
	h := (*fuse.InHeader)(unsafe.Pointer(&in[0]))
	out := b[answerAt:]
	switch h.Opcode {
	case fuseabi.OpForget, fuseabi.OpBatchForget:
		p.proto.HandleRequest([][]byte{in}, nil)
		return
	case fuseabi.OpRead, fuseabi.OpReadDir, fuseabi.OpReadDirPlus:
		out = b[readAnswerAt:]
	case fuseabi.OpSetLkw:
		if (*fuseabi.LockIn)(unsafe.Pointer(&in[fuseabi.InHeaderSize])).Type != unix.F_UNLCK {
			p.answerLater(slices.Clone(in), h.Unique)
			return
		}
	}
	unique, op := h.Unique, h.Opcode
	n, _ := p.proto.HandleRequest([][]byte{in}, [][]byte{out})
	p.write(out[:n], unique, op)
}

// answerLater answers a request that may wait for a lock.
func (p *loop) answerLater(in []byte, unique uint64) {
	p.mu.Lock()
	p.waiting[unique] = struct{}{}
	ended := p.ended
	p.mu.Unlock()
	p.locks.Go(func() {
		if ended {
			return
		}
		out := make([]byte, fuseabi.OutHeaderSize+int(unsafe.Sizeof(fuse.LkOut{})))
		n, _ := p.proto.HandleRequest([][]byte{in}, [][]byte{out})
		p.mu.Lock()
		delete(p.waiting, unique)
		p.mu.Unlock()
		p.write(out[:n], unique, fuseabi.OpSetLkw)
	})
}

func (p *loop) write(out []byte, unique uint64, op uint32) {
	if len(out) == 0 || p.silent.Load() {
		return
	}
	write := rawWrite
	if len(out) >= largeBytes {
		write = longWrite
	}
	err := write(p.fd, out)
	for err == unix.EINTR {
		err = write(p.fd, out)
	}
	// ENOENT: the caller does not wait any more, or the connection is gone.
	if err != 0 && err != unix.ENOENT && err != unix.ENODEV && err != unix.ECONNABORTED {
		p.f.opt.Logger.Error("answering through /dev/fuse", "request", unique, "op", op, "err", err)
	}
}

// wait returns when the connection is gone and all requests are answered, or
// leave was called (false).
func (p *loop) wait() (gone bool) {
	if p.started.Load() {
		<-p.turns.ended
	}
	if !p.fate.CompareAndSwap(fateServed, fateGone) {
		p.running.Wait()
		return false
	}
	// The connection is gone: nobody is waited for.
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		p.running.Wait()
		p.locks.Wait()
		close(ended)
	}()
	for {
		p.interruptWaiting()
		select {
		case <-ended:
			return true
		case <-time.After(endPause):
		}
	}
}

// interruptWaiting ends the waits of requests.
func (p *loop) interruptWaiting() {
	list := p.turns.uniques()
	p.mu.Lock()
	for unique := range p.waiting {
		list = append(list, unique)
	}
	p.mu.Unlock()
	for _, unique := range list {
		fuseabi.Interrupt(p.proto, unique)
	}
}

// leave stops reading requests; the kernel keeps those that come. It reports
// whether all that were read are answered, but for those that wait for locks; the
// others have no answer from now on. left is false if the connection is gone.
func (p *loop) leave() (left, complete bool) {
	if !p.fate.CompareAndSwap(fateServed, fateLeft) {
		return false, false
	}
	p.tellStop()
	ended := make(chan struct{})
	go func() {
		p.running.Wait()
		close(ended)
	}()
	late := time.NewTimer(p.leaving)
	defer late.Stop()
	select {
	case <-ended:
		complete = true
	case <-late.C:
	}
	p.silent.Store(p.resends)
	return true, complete
}

func (p *loop) startNotifier() (*notifier.Client, error) {
	p.life.RLock()
	defer p.life.RUnlock()
	if p.closed {
		return nil, unix.ENODEV
	}
	return notifier.Start(p.fd)
}

// notify sends the kernel a message of its own accord that waits for nothing.
func (p *loop) notify(code int32, body []byte) fuse.Status { return p.send(notification(code, body)) }

func (p *loop) send(message []byte) fuse.Status {
	p.life.RLock()
	defer p.life.RUnlock()
	if p.closed {
		return fuse.ENODEV
	}
	if _, err := unix.Write(p.fd, message); err != nil {
		return fuse.ToStatus(err)
	}
	return fuse.OK
}
