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
	opCommand      = 46         // IORING_OP_URING_CMD
	setupSQE128    = 1 << 10    // IORING_SETUP_SQE128: entries with room for a command
	featSingleMmap = 1 << 0     // IORING_FEAT_SINGLE_MMAP
	enterGetEvents = 1 << 0     // IORING_ENTER_GETEVENTS
	offRings       = 0          // IORING_OFF_SQ_RING, with the other ring behind it
	offEntries     = 0x10000000 // IORING_OFF_SQES
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
		_                                                   uint64
	}
	cq struct {
		head, tail, mask, entries, overflow, cqes, flags, _ uint32
		_                                                   uint64
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
	rings   []byte // mapped: both rings
	slots   []byte // mapped: sqes
	sqes    []sqe
	cqes    []cqe // a power of two
	sqTail  *uint32
	cqHead  *uint32
	cqTail  *uint32
	pending uint32 // queued, not submitted
}

// New makes a ring for up to entries commands at a time. It fails with ENOSYS,
// EPERM or EINVAL where the kernel has no io_uring, forbids it, or is too old.
func New(entries int) (*Ring, error) {
	p := params{flags: setupSQE128}
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, uintptr(entries), uintptr(unsafe.Pointer(&p)), 0)
	if errno != 0 {
		return nil, fmt.Errorf("io_uring_setup: %w", errno)
	}
	r := &Ring{fd: int(fd)}
	if err := r.mapRings(&p); err != nil {
		return nil, errors.Join(fmt.Errorf("io_uring: %w", err), r.Close())
	}
	return r, nil
}

func (r *Ring) mapRings(p *params) (err error) {
	if p.features&featSingleMmap == 0 {
		return unix.ENOSYS // older than such commands
	}
	size := max(p.sq.array+4*p.sqEntries, p.cq.cqes+p.cqEntries*uint32(unsafe.Sizeof(cqe{})))
	if r.rings, err = mapRing(r.fd, offRings, int(size)); err != nil {
		return err
	}
	if r.slots, err = mapRing(r.fd, offEntries, int(p.sqEntries)*int(unsafe.Sizeof(sqe{}))); err != nil {
		return err
	}
	at := func(off uint32) *uint32 { return (*uint32)(unsafe.Pointer(&r.rings[off])) }
	r.sqTail, r.cqHead, r.cqTail = at(p.sq.tail), at(p.cq.head), at(p.cq.tail)
	r.sqes = unsafe.Slice((*sqe)(unsafe.Pointer(&r.slots[0])), p.sqEntries)
	r.cqes = unsafe.Slice((*cqe)(unsafe.Pointer(&r.rings[p.cq.cqes])), p.cqEntries)
	order := unsafe.Slice(at(p.sq.array), p.sqEntries)
	for i := range order {
		order[i] = uint32(i) // the slots in turn
	}
	return nil
}

func mapRing(fd int, off int64, size int) ([]byte, error) {
	return unix.Mmap(fd, off, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
}

// Close ends the ring. Commands that are under way are cancelled, a moment later.
func (r *Ring) Close() error {
	var errs []error
	for _, m := range [][]byte{r.rings, r.slots} {
		if m != nil {
			errs = append(errs, unix.Munmap(m))
		}
	}
	r.rings, r.slots = nil, nil
	return errors.Join(append(errs, unix.Close(r.fd))...)
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
