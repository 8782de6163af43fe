// Package uring is as much of io_uring(7) as it takes to send commands to a
// driver (IORING_OP_URING_CMD) and to wait for their ends.
package uring

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// From include/uapi/linux/io_uring.h.
const (
	opCommand      = 46      // IORING_OP_URING_CMD
	setupSQE128    = 1 << 10 // IORING_SETUP_SQE128: entries with room for a command
	setupNoMmap    = 1 << 14 // IORING_SETUP_NO_MMAP: the rings are in memory of ours (Linux 6.5)
	enterGetEvents = 1 << 0  // IORING_ENTER_GETEVENTS
)

// CommandSize is the room for a command, in bytes.
const CommandSize = 80

// Command is what the driver gets. The memory behind Addr is between the two,
// and must not move: it is mapped, not allocated.
type Command struct {
	FD   int
	Op   uint32
	Addr unsafe.Pointer
	Len  uint32
	Data uint64 // comes back with the end
	Body [CommandSize]byte
}

// params is struct io_uring_params.
type params struct {
	sqEntries, cqEntries, flags, threadCPU, threadIdle, features, wqFD uint32
	_                                                                  [3]uint32
	sq                                                                 struct {
		head, tail, mask, entries, flags, dropped, array, _ uint32
		address                                             uint64 // of the sqes
	}
	cq struct {
		head, tail, mask, entries, overflow, cqes, flags, _ uint32
		address                                             uint64 // of both rings
	}
}

// sqe is struct io_uring_sqe, of 128 bytes, as a command has it.
type sqe struct {
	opcode, flags uint8
	ioprio        uint16
	fd            int32
	op, _         uint32
	addr          uint64
	len, rwFlags  uint32
	data          uint64
	_             uint64
	body          [CommandSize]byte
}

// cqe is struct io_uring_cqe.
type cqe struct {
	data  uint64
	res   int32
	flags uint32
}

// Ring is one io_uring. Its methods are for one goroutine. That should stay on
// its thread: the kernel works for a command on the thread that sent it.
type Ring struct {
	fd      int
	memory  []byte // of both rings, and behind them of the sqes
	sqes    []sqe
	cqes    []cqe // a power of two
	sqTail  *uint32
	cqHead  *uint32
	cqTail  *uint32
	pending uint32 // queued, not submitted
}

// ringBytes is the memory of both rings: a page, which need not be contiguous with another one.
const ringBytes = 4096

// maxEntries is how many commands have room in that, and in as much for sqes.
const maxEntries = ringBytes / int(unsafe.Sizeof(sqe{}))

// New makes a ring for up to entries commands at a time. It fails with ENOSYS,
// EPERM or EINVAL where the kernel has no io_uring, forbids it, or is too old.
//
// The rings are in memory that is mapped before, not a mapping of the ring. That would keep it, with the
// commands that are under way, as long as any thread of a killed process cannot end: one that waits for an
// answer which only the end of these commands brings about, for good.
func New(entries int) (*Ring, error) {
	if entries > maxEntries {
		return nil, unix.EINVAL
	}
	memory, err := unix.Mmap(-1, 0, 2*ringBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		return nil, fmt.Errorf("memory for an io_uring: %w", err)
	}
	p := params{flags: setupSQE128 | setupNoMmap}
	p.cq.address = uint64(uintptr(unsafe.Pointer(&memory[0])))
	p.sq.address = uint64(uintptr(unsafe.Pointer(&memory[ringBytes])))
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, uintptr(entries), uintptr(unsafe.Pointer(&p)), 0)
	if errno != 0 {
		return nil, errors.Join(fmt.Errorf("io_uring_setup: %w", errno), unix.Munmap(memory))
	}
	at := func(off uint32) *uint32 { return (*uint32)(unsafe.Pointer(&memory[off])) }
	r := &Ring{fd: int(fd), memory: memory, sqTail: at(p.sq.tail), cqHead: at(p.cq.head), cqTail: at(p.cq.tail),
		sqes: unsafe.Slice((*sqe)(unsafe.Pointer(&memory[ringBytes])), p.sqEntries),
		cqes: unsafe.Slice((*cqe)(unsafe.Pointer(&memory[p.cq.cqes])), p.cqEntries)}
	order := unsafe.Slice(at(p.sq.array), p.sqEntries)
	for i := range order {
		order[i] = uint32(i) // the slots in turn
	}
	return r, nil
}

// Close ends the ring. Commands that are under way are cancelled, a moment later.
func (r *Ring) Close() error {
	err := unix.Close(r.fd)
	if r.memory != nil {
		err = errors.Join(err, unix.Munmap(r.memory))
	}
	r.memory = nil
	return err
}

// Queue prepares a command for the next Enter. There is room for as many as New
// was told.
func (r *Ring) Queue(c *Command) {
	tail := *r.sqTail
	r.sqes[tail%uint32(len(r.sqes))] = sqe{opcode: opCommand, fd: int32(c.FD), op: c.Op,
		addr: uint64(uintptr(c.Addr)), len: c.Len, data: c.Data, body: c.Body}
	atomic.StoreUint32(r.sqTail, tail+1)
	r.pending++
}

// Enter submits what is queued and waits until at least wait commands have ended.
func (r *Ring) Enter(wait int) error {
	for {
		n, _, errno := unix.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(r.fd), uintptr(r.pending), uintptr(wait), enterGetEvents, 0, 0)
		if errno != 0 && errno != unix.EINTR {
			return fmt.Errorf("io_uring_enter: %w", errno)
		}
		if errno == 0 {
			r.pending -= uint32(n)
			if r.pending == 0 {
				return nil
			}
		}
	}
}

// Next takes the end of a command: its data, and what the driver returned, a
// negative error number if it failed.
func (r *Ring) Next() (data uint64, res int32, ok bool) {
	data, res, ok = r.Peek()
	if ok {
		atomic.StoreUint32(r.cqHead, *r.cqHead+1)
	}
	return data, res, ok
}

// Peek is Next, but leaves the end there.
func (r *Ring) Peek() (data uint64, res int32, ok bool) {
	head := *r.cqHead
	if head == atomic.LoadUint32(r.cqTail) {
		return 0, 0, false
	}
	e := &r.cqes[head%uint32(len(r.cqes))]
	return e.data, e.res, true
}
