package fusemount

import (
	"encoding/binary"
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
	// answered. What is not answered then, the next server is sent again.
	leaveWait = 10 * time.Second
	// leavePause is the pause between looks at what is left.
	leavePause = 5 * time.Millisecond

	// resentBit marks the number of a request that is sent again
	// (FUSE_UNIQUE_RESEND).
	resentBit = 1 << 63

	opReadDir     = 28
	opReadDirPlus = 44

	notifyInvalInode = 2
	notifyInvalEntry = 3
	notifyResend     = 7
)

// loop serves a connection through /dev/fuse without go-fuse's server: its
// requests are in memory that is there (locked), since the kernel answers EIO to
// a caller whose request it could not copy when the server was killed; and it
// can stop reading while the connection lives on.
type loop struct {
	f     *rawFS
	fd    int
	proto *fuse.ProtocolServer

	reading  atomic.Int32 // threads that wait for a request
	threads  atomic.Int32
	leaving  atomic.Bool
	running  sync.WaitGroup // threads
	locks    sync.WaitGroup // requests that may wait for locks
	answered atomic.Int64   // requests that are being answered by threads

	mu      sync.Mutex
	free    [][]byte
	waiting map[uint64]struct{} // requests that may wait for locks
	ended   bool
}

func newLoop(f *rawFS, fd int, api fuse.RawFileSystem, opt *fuse.MountOptions) *loop {
	return &loop{f: f, fd: fd, proto: fuse.NewProtocolServer(api, opt), waiting: make(map[uint64]struct{})}
}

// buffer returns memory for a request.
func (p *loop) buffer() ([]byte, error) {
	p.mu.Lock()
	if n := len(p.free); n > 0 {
		b := p.free[n-1]
		p.free = p.free[:n-1]
		p.mu.Unlock()
		return b, nil
	}
	p.mu.Unlock()
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

func (p *loop) release(b []byte) {
	p.mu.Lock()
	keep := len(p.free) < spareBuffers
	if keep {
		p.free = append(p.free, b)
	}
	p.mu.Unlock()
	if !keep {
		_ = unix.Munmap(b) // ours
	}
}

// read returns the next request, in b; nil at the end of the connection.
func (p *loop) read(b []byte) []byte {
	for {
		n, err := unix.Read(p.fd, b[:answerAt])
		switch {
		case err == nil && n >= inHeaderSize:
			return b[:n]
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOENT):
			continue
		case !errors.Is(err, unix.ENODEV) && !errors.Is(err, unix.ECONNABORTED):
			p.f.opt.Logger.Error("reading /dev/fuse", "device", p.f.conn.device, "bytes", n, "err", err)
		}
		return nil
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
	b, err := p.buffer()
	if err != nil {
		p.f.opt.Logger.Error("a mount has fewer threads", "device", p.f.conn.device, "err", err)
		return
	}
	defer p.release(b)
	for !p.leaving.Load() {
		if p.reading.Add(1) > int32(max(2, runtime.GOMAXPROCS(0))) {
			p.reading.Add(-1)
			return
		}
		in := p.read(b)
		left := p.reading.Add(-1)
		if in == nil {
			return
		}
		if left == 0 && !p.leaving.Load() {
			p.grow()
		}
		p.answered.Add(1)
		p.answer(b, in)
		p.answered.Add(-1)
	}
}

// answer answers the request in, which is at the beginning of b.
func (p *loop) answer(b, in []byte) {
	h := (*fuse.InHeader)(unsafe.Pointer(&b[0]))
	out := b[answerAt:]
	switch h.Opcode {
	case opForget, opBatchForget:
		p.proto.HandleRequest([][]byte{in}, nil)
		return
	case opRead, opReadDir, opReadDirPlus:
		out = b[readAnswerAt:]
	case opSetLkw:
		if (*ringLockIn)(unsafe.Pointer(&b[inHeaderSize])).typ != unix.F_UNLCK {
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
		out := make([]byte, outHeaderSize+int(unsafe.Sizeof(fuse.LkOut{})))
		n, _ := p.proto.HandleRequest([][]byte{in}, [][]byte{out})
		p.mu.Lock()
		delete(p.waiting, unique)
		p.mu.Unlock()
		p.write(out[:n], unique, opSetLkw)
	})
}

func (p *loop) write(out []byte, unique uint64, op uint32) {
	if len(out) == 0 {
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
	if p.leaving.Load() {
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
		case <-time.After(ringPause):
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
		in := fuse.InterruptIn{InHeader: fuse.InHeader{Length: uint32(unsafe.Sizeof(fuse.InterruptIn{})), Opcode: opInterrupt}, Unique: unique}
		b := unsafe.Slice((*byte)(unsafe.Pointer(&in)), unsafe.Sizeof(in))
		p.proto.HandleRequest([][]byte{b}, [][]byte{make([]byte, outHeaderSize)})
	}
}

// leave stops reading requests; the kernel keeps those that come. It tells
// whether all that were read are answered, but for those that wait for locks.
func (p *loop) leave() (complete bool) {
	p.leaving.Store(true)
	for end := time.Now().Add(leaveWait); p.threads.Load() > 0 || p.answered.Load() > 0; time.Sleep(leavePause) {
		if time.Now().After(end) {
			return false
		}
		if p.reading.Load() > 0 {
			p.wake()
		}
	}
	return true
}

// wake makes the kernel send a request, so that a thread that waits for one
// looks at leaving. Nobody waits for its answer but a thread of its own, which
// may find nobody to give it.
func (p *loop) wake() {
	go onOwnThread(func() {
		if ownDescriptors(-1) != nil || p.f.conn.enter() != nil {
			return // requests of others wake it, or the end of the process does
		}
		var st unix.Statx_t
		_ = unix.Statx(unix.AT_FDCWD, ".", unix.AT_STATX_FORCE_SYNC, unix.STATX_SIZE, &st)
		_ = unix.Chdir("/") // cannot fail
	})
}

// notify sends the kernel a message of its own accord.
func (p *loop) notify(code int32, body []byte) fuse.Status {
	b := make([]byte, outHeaderSize, outHeaderSize+len(body))
	binary.NativeEndian.PutUint32(b, uint32(outHeaderSize+len(body)))
	binary.NativeEndian.PutUint32(b[4:], uint32(code))
	if _, err := unix.Write(p.fd, append(b, body...)); err != nil {
		return fuse.ToStatus(err)
	}
	return fuse.OK
}

// InodeNotify implements notifier.
func (p *loop) InodeNotify(node uint64, off, length int64) fuse.Status {
	b := binary.NativeEndian.AppendUint64(nil, node)
	b = binary.NativeEndian.AppendUint64(b, uint64(off))
	return p.notify(notifyInvalInode, binary.NativeEndian.AppendUint64(b, uint64(length)))
}

// EntryNotify implements notifier.
func (p *loop) EntryNotify(parent uint64, name string) fuse.Status {
	b := binary.NativeEndian.AppendUint64(nil, parent)
	b = binary.NativeEndian.AppendUint32(b, uint32(len(name)))
	b = binary.NativeEndian.AppendUint32(b, 0)
	return p.notify(notifyInvalEntry, append(append(b, name...), 0))
}
