package ring

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"ogw/fusemount/internal/fuseabi"
)

// roamBytes is the size from which a READ or WRITE may leave its CPU: below it,
// waking another one takes longer than the request.
const roamBytes = 128 << 10

// header is struct fuse_uring_req_header.
type header struct {
	inOut       [128]byte // struct fuse_in_header, then struct fuse_out_header
	opIn        [128]byte // structure of the operation; what follows it is payload
	flags       uint64
	commitID    uint64
	payloadSize uint32
	_           uint32
	_           uint64
}

// In the memory of an entry: the header, the two addresses that register it,
// and a page later the payload.
const (
	entryVectors = 1 << 10
	entryPayload = 4 << 10
	entryBytes   = entryPayload + fuseabi.MaxRequestBytes
)

// entry holds one request at a time. The kernel writes it into the memory,
// and reads the answer from there.
type entry struct {
	memory  []byte // mapped
	header  *header
	payload []byte
	names   []byte        // copy of a small payload, since the answer goes over it
	in      [3][]byte     // the request: header, structure, payload
	out     [2][]byte     // room for the answer: header, payload
	unique  atomic.Uint64 // of the request that is being answered, or 0
	waits   atomic.Bool   // Ring.Waits was called for that
}

func newEntry() (*entry, error) {
	m, err := unix.Mmap(-1, 0, entryBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("memory for a request: %w", err)
	}
	e := &entry{memory: m, header: (*header)(unsafe.Pointer(&m[0])), payload: m[entryPayload:]}
	e.in[0] = e.header.inOut[:fuseabi.InHeaderSize]
	e.out = [2][]byte{e.header.inOut[:fuseabi.OutHeaderSize], e.payload}
	return e, nil
}

// vectors are the addresses by which the kernel knows the entry.
func (e *entry) vectors() *[2]unix.Iovec {
	v := (*[2]unix.Iovec)(unsafe.Pointer(&e.memory[entryVectors]))
	v[0] = unix.Iovec{Base: &e.memory[0], Len: uint64(unsafe.Sizeof(header{}))}
	v[1] = unix.Iovec{Base: &e.payload[0], Len: uint64(len(e.payload))}
	return v
}

func (e *entry) inHeader() *fuse.InHeader {
	return (*fuse.InHeader)(unsafe.Pointer(&e.header.inOut))
}

// large reports whether the request moves so many bytes that its thread roams.
func (e *entry) large() bool {
	switch e.inHeader().Opcode {
	case fuseabi.OpWrite:
		return e.header.payloadSize >= roamBytes
	case fuseabi.OpRead:
		return (*fuseabi.ReadIn)(unsafe.Pointer(&e.header.opIn)).Size >= roamBytes
	}
	return false
}

// mayLock reports whether the request may wait for a lock. An unlock does not, though
// flock(2) has it ask as if.
func (e *entry) mayLock() bool {
	return e.inHeader().Opcode == fuseabi.OpSetLkw && (*fuseabi.LockIn)(unsafe.Pointer(&e.header.opIn)).Type != unix.F_UNLCK
}

// request returns the parts of the request, or nil if they make none.
func (e *entry) request() [][]byte {
	h := e.inHeader()
	size := int64(h.Length) - int64(fuseabi.InHeaderSize) - int64(e.header.payloadSize)
	if size < 0 || size > int64(len(e.header.opIn)) || int64(e.header.payloadSize) > int64(len(e.payload)) {
		return nil
	}
	e.in[1] = e.header.opIn[:size]
	e.in[2] = e.payload[:e.header.payloadSize]
	if h.Opcode != fuseabi.OpWrite {
		e.names = append(e.names[:0], e.in[2]...)
		e.in[2] = e.names
	}
	return e.in[:]
}

// fail answers with an error.
func (e *entry) fail(unique uint64, errno syscall.Errno) {
	*(*fuse.OutHeader)(unsafe.Pointer(&e.header.inOut)) =
		fuse.OutHeader{Length: uint32(fuseabi.OutHeaderSize), Status: -int32(errno), Unique: unique}
	e.header.payloadSize = 0
}
