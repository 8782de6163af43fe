package fusemount

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"ogw/fusemount/internal/uring"
)

// roamBytes is the size from which a READ or WRITE may leave its CPU: below it,
// waking another one takes longer than the request.
const roamBytes = 128 << 10

// From include/uapi/linux/fuse.h.
const (
	ringRegister       = 1 // FUSE_IO_URING_CMD_REGISTER
	ringCommitAndFetch = 2 // FUSE_IO_URING_CMD_COMMIT_AND_FETCH

	opForget        = 2
	opSetAttr       = 4
	opSymlink       = 6
	opMknod         = 8
	opMkdir         = 9
	opUnlink        = 10
	opRmdir         = 11
	opRename        = 12
	opLink          = 13
	opOpen          = 14
	opRead          = 15
	opWrite         = 16
	opFsync         = 20
	opSetXAttr      = 21
	opRemoveXAttr   = 24
	opFlush         = 25
	opInit          = 26
	opSetLkw        = 33
	opCreate        = 35
	opInterrupt     = 36
	opIoctl         = 39
	opBatchForget   = 42
	opFallocate     = 43
	opRename2       = 45
	opCopyFileRange = 47
	opTmpfile       = 51
)

const (
	inHeaderSize  = int(unsafe.Sizeof(fuse.InHeader{}))
	outHeaderSize = int(unsafe.Sizeof(fuse.OutHeader{}))
)

// ringHeader is struct fuse_uring_req_header.
type ringHeader struct {
	inOut       [128]byte // struct fuse_in_header, then struct fuse_out_header
	opIn        [128]byte // structure of the operation; what follows it is payload
	flags       uint64
	commitID    uint64
	payloadSize uint32
	_           uint32
	_           uint64
}

// ringReadIn is how struct fuse_read_in begins.
type ringReadIn struct {
	fh, offset uint64
	size       uint32
}

// ringLockIn is how struct fuse_lk_in begins.
type ringLockIn struct {
	fh, owner, start, end uint64
	typ                   uint32
}

// ringCommand is struct fuse_uring_cmd_req.
type ringCommand struct {
	flags, commitID uint64
	queue           uint16
	_               [6]byte
}

// In the memory of an entry: the header, the two addresses that register it,
// and a page later the payload.
const (
	entryVectors = 1 << 10
	entryPayload = 4 << 10
	entryBytes   = entryPayload + maxRequestBytes
)

// ringEntry holds one request at a time. The kernel writes it into the memory,
// and reads the answer from there.
type ringEntry struct {
	memory  []byte // mapped
	header  *ringHeader
	payload []byte
	names   []byte        // copy of a small payload, since the answer goes over it
	in      [3][]byte     // the request: header, structure, payload
	out     [2][]byte     // room for the answer: header, payload
	unique  atomic.Uint64 // of the request that is being answered, or 0
}

func newRingEntry() (*ringEntry, error) {
	m, err := unix.Mmap(-1, 0, entryBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("memory for a request: %w", err)
	}
	e := &ringEntry{memory: m, header: (*ringHeader)(unsafe.Pointer(&m[0])), payload: m[entryPayload:]}
	e.in[0] = e.header.inOut[:inHeaderSize]
	e.out = [2][]byte{e.header.inOut[:outHeaderSize], e.payload}
	return e, nil
}

// vectors are the addresses by which the kernel knows the entry.
func (e *ringEntry) vectors() *[2]unix.Iovec {
	v := (*[2]unix.Iovec)(unsafe.Pointer(&e.memory[entryVectors]))
	v[0] = unix.Iovec{Base: &e.memory[0], Len: uint64(unsafe.Sizeof(ringHeader{}))}
	v[1] = unix.Iovec{Base: &e.payload[0], Len: uint64(len(e.payload))}
	return v
}

func (e *ringEntry) inHeader() *fuse.InHeader {
	return (*fuse.InHeader)(unsafe.Pointer(&e.header.inOut))
}

// large tells whether the request moves so many bytes that its thread roams.
func (e *ringEntry) large() bool {
	switch e.inHeader().Opcode {
	case opWrite:
		return e.header.payloadSize >= roamBytes
	case opRead:
		return (*ringReadIn)(unsafe.Pointer(&e.header.opIn)).size >= roamBytes
	}
	return false
}

// mayLock tells whether the request may wait for a lock. An unlock does not, though
// flock(2) has it ask as if.
func (e *ringEntry) mayLock() bool {
	return e.inHeader().Opcode == opSetLkw && (*ringLockIn)(unsafe.Pointer(&e.header.opIn)).typ != unix.F_UNLCK
}

// mayTell tells whether a request of the kind may change what other superblocks
// keep, and wait until they know: of READ requests among others.
func mayTell(opcode uint32) bool {
	switch opcode {
	case opSetAttr, opSymlink, opMknod, opMkdir, opUnlink, opRmdir, opRename, opLink, opOpen, opWrite, opFsync, opSetXAttr,
		opRemoveXAttr, opFlush, opCreate, opFallocate, opRename2, opCopyFileRange, opTmpfile, opIoctl:
		return true
	}
	return false
}

// request returns the parts of the request, or nil if they make none.
func (e *ringEntry) request() [][]byte {
	h := e.inHeader()
	size := int64(h.Length) - int64(inHeaderSize) - int64(e.header.payloadSize)
	if size < 0 || size > int64(len(e.header.opIn)) || int64(e.header.payloadSize) > int64(len(e.payload)) {
		return nil
	}
	e.in[1] = e.header.opIn[:size]
	e.in[2] = e.payload[:e.header.payloadSize]
	if h.Opcode != opWrite {
		e.names = append(e.names[:0], e.in[2]...)
		e.in[2] = e.names
	}
	return e.in[:]
}

// fail answers with an error.
func (e *ringEntry) fail(unique uint64, errno syscall.Errno) {
	*(*fuse.OutHeader)(unsafe.Pointer(&e.header.inOut)) =
		fuse.OutHeader{Length: uint32(outHeaderSize), Status: -int32(errno), Unique: unique}
	e.header.payloadSize = 0
}

// ringThread answers the requests of a queue, one at a time. Each has an entry of
// its own: what the kernel puts into an entry always has a thread that waits for it.
type ringThread struct {
	r       *ring
	q       *ringQueue
	u       *uring.Ring
	e       *ringEntry
	command uring.Command
	// answered tells that the kernel, when it takes the entry back, has looked at
	// its queue: it does not when the entry is registered.
	answered bool
}

func (r *ring) newThread(q *ringQueue) (*ringThread, error) {
	u, err := uring.New(1)
	if err != nil {
		return nil, err
	}
	e, err := newRingEntry()
	if err != nil {
		return nil, errors.Join(err, u.Close())
	}
	t := &ringThread{r: r, q: q, u: u, e: e}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries[e] = struct{}{}
	return t, nil
}

// close is for a thread whose connection is gone, or that never ran: the kernel
// does not write to its memory.
func (t *ringThread) close() {
	t.r.mu.Lock()
	delete(t.r.entries, t.e)
	t.r.mu.Unlock()
	if err := errors.Join(t.u.Close(), unix.Munmap(t.e.memory)); err != nil {
		t.r.f.opt.Logger.Error("releasing a thread of the io_uring", "err", err)
	}
}

// run registers the entry, tells so, and answers requests until the connection is
// gone. Its thread is its own, and ends with it: the kernel hands a request over
// on the thread that registered the entry or answered last.
func (t *ringThread) run(registered func(error)) {
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
	if ringGone(err) {
		t.close()
		return
	}
	// The kernel may know the memory still: it stays.
	t.r.f.opt.Logger.Error("a thread of the io_uring ended", "err", err)
}

// ringGone tells whether an error just says that the connection ended.
func ringGone(err error) bool {
	return errors.Is(err, unix.ENOTCONN) || errors.Is(err, unix.ECONNABORTED) || errors.Is(err, unix.ECANCELED)
}

// setAffinity is in vain where a CPU went away or is forbidden now: the thread
// works anywhere.
func setAffinity(set *unix.CPUSet) { _ = unix.SchedSetaffinity(0, set) }

// queue prepares a command for the entry.
func (t *ringThread) queue(op uint32, vectors *[2]unix.Iovec, commit uint64) {
	t.command = uring.Command{FD: t.r.fd, Op: op}
	if vectors != nil {
		t.command.Addr, t.command.Len = unsafe.Pointer(vectors), uint32(len(vectors))
	}
	*(*ringCommand)(unsafe.Pointer(&t.command.Body)) = ringCommand{commitID: commit, queue: uint16(t.q.id)}
	t.u.Queue(&t.command)
}

func (t *ringThread) register() error {
	t.q.idle.Add(1)
	t.queue(ringRegister, t.e.vectors(), 0)
	if err := t.enter(0); err != nil {
		return err
	}
	if _, res, ok := t.u.Peek(); ok && res < 0 { // else it is the first request
		return fmt.Errorf("register: %w", syscall.Errno(-res))
	}
	return nil
}

// enter is the io_uring's, but waits for memory that the kernel lacks.
func (t *ringThread) enter(wait int) error {
	for {
		err := t.u.Enter(wait)
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.ENOMEM) {
			return err
		}
		t.r.complain("the kernel has no memory for an answer", err)
		time.Sleep(ringPause)
	}
}

// next hands over the answer to the last request, waits for another and answers
// it. On an error the entry holds none.
func (t *ringThread) next() error {
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
	if idle+t.q.begin.Load() < ringSpare {
		t.r.grow(t.q)
	}
	roams := t.e.large()
	if roams {
		setAffinity(t.r.allowed)
	}
	commit := t.e.header.commitID
	t.answer()
	t.q.idle.Add(1)
	t.queue(ringCommitAndFetch, nil, commit)
	t.answered = true
	if roams {
		err := t.enter(0) // with the copy of what was read
		setAffinity(t.q.home)
		return err
	}
	return nil
}

// wait hands over the answer and waits for the next request.
func (t *ringThread) wait() error {
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

// mayWait tells whether a request may wait for a lock: another thread waits for
// requests then, so that who unlocks gets through. It may have to be started, or
// to end what it does.
func (t *ringThread) mayWait() bool {
	for begin := time.Now(); t.q.idle.Load() <= 0; time.Sleep(time.Millisecond) {
		soon := t.q.begin.Load() > 0 || t.r.grow(t.q) || t.q.waits.Load() < t.q.threads.Load()
		if !soon || time.Since(begin) > ringPatience {
			return false
		}
	}
	return true
}

// answer replaces the request in the entry by its answer.
func (t *ringThread) answer() {
	e, h := t.e, *t.e.inHeader()
	locks := e.mayLock()
	waits := locks || mayTell(h.Opcode) && t.r.f.conn.set.several.Load()
	if waits {
		t.q.waits.Add(1)
		defer t.q.waits.Add(-1)
	}
	in := e.request()
	switch {
	case in == nil:
		t.r.f.opt.Logger.Error("the kernel sent a request that is none", "operation", h.Opcode, "length", h.Length)
		e.fail(h.Unique, syscall.EIO)
		return
	case waits && !t.mayWait() && locks:
		e.fail(h.Unique, syscall.ENOLCK)
		return
	case waits && t.q.mayHold():
		t.r.kick(t.q)
	}
	e.unique.Store(h.Unique)
	n, _ := t.r.proto.HandleRequest(in, e.out[:])
	e.unique.Store(0)
	if n < outHeaderSize {
		e.fail(h.Unique, syscall.EIO) // go-fuse logged why
		return
	}
	e.header.payloadSize = uint32(n - outHeaderSize)
}
