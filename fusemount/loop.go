package fusemount

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"ogw/fusemount/internal/fuseabi"
	"ogw/fusemount/notifier"
)

const (
	// maxLoopThreads bounds the requests that are answered at a time, and with
	// them their buffers. A lock that is waited for has none.
	maxLoopThreads = 128
	// spareBuffers are kept for the next requests.
	spareBuffers = 8
	// Where an answer stands in a buffer: behind the structure of a request for
	// bytes, which has nothing else; else behind the longest request. It is as
	// long as an attribute or a link can be.
	readAnswerAt   = 4096 - 16 // what is read begins at a page
	answerAt       = 4096 + maxRequestBytes
	maxAnswerBytes = 68 << 10
	loopBuffer     = answerAt + maxAnswerBytes
	// leaveWait bounds how long leaving waits for requests that are being
	// answered. What is not answered then, the next server is sent again, if the
	// kernel can do that; else it is answered as long as this process lives.
	leaveWait = 10 * time.Second
	// endPause is the pause before requests that do not end are interrupted again.
	endPause = 10 * time.Millisecond

	// resentBit marks the number of a request that is sent again
	// (FUSE_UNIQUE_RESEND).
	resentBit = 1 << 63
)

// loop serves a connection through /dev/fuse without go-fuse's server: its
// requests are in memory that is there (locked), since the kernel answers EIO to
// a caller whose request it could not copy when the server was killed; and it
// can stop reading while the connection lives on.
type loop struct {
	f     *rawFS
	fd    int
	proto *fuse.ProtocolServer

	stop    int          // eventfd that ends the wait for requests, once it was written to
	reading atomic.Int32 // threads that wait for a request
	threads atomic.Int32
	fate    atomic.Int32
	running sync.WaitGroup // threads
	locks   sync.WaitGroup // requests that may wait for locks

	mu      sync.Mutex
	free    []*reader
	waiting map[uint64]struct{} // requests that may wait for locks
	ended   bool

	patience time.Duration // leaveWait
	resends  bool          // the kernel sends again what is not answered
	silent   atomic.Bool   // what is answered now would be that this server ends

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

// reader is what a thread needs to wait for a request: memory for it, and an
// epoll of its own.
type reader struct {
	mem  []byte
	poll int
}

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
	p := &loop{f: f, fd: fd, stop: stop, proto: fuse.NewProtocolServer(api, opt), waiting: make(map[uint64]struct{}), patience: leaveWait}
	p.apart.start, p.apart.send, p.apart.log = p.startNotifier, p.send, f.opt.Logger
	return p, nil
}

// close comes when all threads are gone.
func (p *loop) close() {
	p.life.Lock()
	defer p.life.Unlock()
	p.closed = true
	p.apart.close()
	for _, b := range p.free {
		b.close()
	}
	p.free = nil
	unix.Close(p.stop)
	unix.Close(p.fd)
}

// reader returns one that nobody uses.
func (p *loop) reader() (*reader, error) {
	p.mu.Lock()
	if n := len(p.free); n > 0 {
		b := p.free[n-1]
		p.free = p.free[:n-1]
		p.mu.Unlock()
		return b, nil
	}
	p.mu.Unlock()
	mem, err := requestMemory()
	if err != nil {
		return nil, err
	}
	b := &reader{mem: mem, poll: -1}
	if b.poll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err == nil {
		// A request wakes one thread, not all.
		err = unix.EpollCtl(b.poll, unix.EPOLL_CTL_ADD, p.fd, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLEXCLUSIVE, Fd: int32(p.fd)})
	}
	if err == nil {
		err = unix.EpollCtl(b.poll, unix.EPOLL_CTL_ADD, p.stop, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(p.stop)})
	}
	if err != nil {
		b.close()
		return nil, fmt.Errorf("epoll: %w", err)
	}
	return b, nil
}

func (b *reader) close() {
	_ = unix.Munmap(b.mem) // ours
	if b.poll >= 0 {
		unix.Close(b.poll)
	}
}

// requestMemory is there: the kernel finds it without a fault.
func requestMemory() ([]byte, error) {
	const flags = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_POPULATE
	b, err := unix.Mmap(-1, 0, loopBuffer, unix.PROT_READ|unix.PROT_WRITE, flags|unix.MAP_LOCKED)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EPERM) { // RLIMIT_MEMLOCK
		b, err = unix.Mmap(-1, 0, loopBuffer, unix.PROT_READ|unix.PROT_WRITE, flags)
	}
	if err != nil {
		return nil, fmt.Errorf("memory for a request: %w", err)
	}
	return b, nil
}

func (p *loop) release(b *reader) {
	p.mu.Lock()
	keep := len(p.free) < spareBuffers
	if keep {
		p.free = append(p.free, b)
	}
	p.mu.Unlock()
	if !keep {
		b.close()
	}
}

// read returns the next request, in b; nil at the end of the connection, or when
// the loop leaves it.
func (p *loop) read(b *reader) []byte {
	for {
		n, err := unix.Read(p.fd, b.mem[:answerAt])
		switch {
		case err == nil && n >= fuseabi.InHeaderSize:
			return b.mem[:n]
		case errors.Is(err, unix.EAGAIN):
			if !p.await(b) {
				return nil
			}
			continue
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.ENOENT):
			continue
		case !errors.Is(err, unix.ENODEV) && !errors.Is(err, unix.ECONNABORTED):
			p.f.opt.Logger.Error("reading /dev/fuse", "device", p.f.conn.number(), "bytes", n, "err", err)
		}
		return nil
	}
}

// tellStop ends all waits for requests.
func (p *loop) tellStop() {
	_, _ = unix.Write(p.stop, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // cannot fail
}

// await returns when there may be a request; false, if the loop leaves.
func (p *loop) await(b *reader) bool {
	var events [2]unix.EpollEvent
	for {
		n, err := unix.EpollWait(b.poll, events[:], -1)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			p.f.opt.Logger.Error("waiting for requests", "device", p.f.conn.number(), "err", err)
			return false
		}
		return !slices.ContainsFunc(events[:n], func(e unix.EpollEvent) bool { return e.Fd == int32(p.stop) })
	}
}

// start reads requests until the connection ends or leave is called.
func (p *loop) start() {
	for range max(2, runtime.GOMAXPROCS(0)) {
		p.grow()
	}
}

func (p *loop) grow() {
	if p.threads.Add(1) > maxLoopThreads {
		p.threads.Add(-1)
		return
	}
	p.running.Go(p.run)
}

// run is one thread. There is always one more that waits for a request, as long
// as there may be, so that none waits for another to be answered.
func (p *loop) run() {
	defer p.threads.Add(-1)
	b, err := p.reader()
	if err != nil {
		p.f.opt.Logger.Error("a mount has fewer threads", "device", p.f.conn.number(), "err", err)
		return
	}
	defer p.release(b)
	for p.fate.Load() == fateServed {
		if p.reading.Add(1) > int32(max(2, runtime.GOMAXPROCS(0))) {
			p.reading.Add(-1)
			return
		}
		in := p.read(b)
		left := p.reading.Add(-1)
		if in == nil {
			return
		}
		if left == 0 && p.fate.Load() == fateServed {
			p.grow()
		}
		p.answer(b.mem, in)
	}
}

// answer answers the request in, which is at the beginning of b.
func (p *loop) answer(b, in []byte) {
	h := (*fuse.InHeader)(unsafe.Pointer(&b[0]))
	out := b[answerAt:]
	switch h.Opcode {
	case fuseabi.OpForget, fuseabi.OpBatchForget:
		p.proto.HandleRequest([][]byte{in}, nil)
		return
	case fuseabi.OpRead, fuseabi.OpReadDir, fuseabi.OpReadDirPlus:
		out = b[readAnswerAt:]
	case fuseabi.OpSetLkw:
		if (*fuseabi.LockIn)(unsafe.Pointer(&b[fuseabi.InHeaderSize])).Type != unix.F_UNLCK {
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
	_, err := unix.Write(p.fd, out)
	for errors.Is(err, unix.EINTR) {
		_, err = unix.Write(p.fd, out)
	}
	// ENOENT: the caller does not wait any more, or the connection is gone.
	if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENODEV) && !errors.Is(err, unix.ECONNABORTED) {
		p.f.opt.Logger.Error("answering through /dev/fuse", "request", unique, "op", op, "err", err)
	}
}

// wait returns when the connection is gone and all requests are answered, or
// leave was called (false).
func (p *loop) wait() (gone bool) {
	p.running.Wait()
	if !p.fate.CompareAndSwap(fateServed, fateGone) {
		return false
	}
	// The connection is gone: nobody is waited for.
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	ended := make(chan struct{})
	go func() {
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

// interruptWaiting ends the waits for locks.
func (p *loop) interruptWaiting() {
	p.mu.Lock()
	list := make([]uint64, 0, len(p.waiting))
	for unique := range p.waiting {
		list = append(list, unique)
	}
	p.mu.Unlock()
	for _, unique := range list {
		fuseabi.Interrupt(p.proto, unique)
	}
}

// leave stops reading requests; the kernel keeps those that come. It tells
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
	late := time.NewTimer(p.patience)
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
