// Package fuseabi is what go-fuse keeps to itself of the protocol between the
// kernel and a FUSE server (include/uapi/linux/fuse.h), for transports that feed
// its ProtocolServer.
package fuseabi

import (
	"unsafe"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// MaxRequestBytes is what one READ or WRITE carries: the kernel's limit.
const MaxRequestBytes = 1 << 20

// Sizes of what begins each request and each answer.
const (
	InHeaderSize  = int(unsafe.Sizeof(fuse.InHeader{}))
	OutHeaderSize = int(unsafe.Sizeof(fuse.OutHeader{}))
)

// Operations (enum fuse_opcode).
const (
	OpForget        = 2
	OpGetAttr       = 3
	OpSetAttr       = 4
	OpSymlink       = 6
	OpMknod         = 8
	OpMkdir         = 9
	OpUnlink        = 10
	OpRmdir         = 11
	OpRename        = 12
	OpLink          = 13
	OpOpen          = 14
	OpRead          = 15
	OpWrite         = 16
	OpFsync         = 20
	OpSetXAttr      = 21
	OpRemoveXAttr   = 24
	OpFlush         = 25
	OpInit          = 26
	OpReadDir       = 28
	OpSetLkw        = 33
	OpCreate        = 35
	OpInterrupt     = 36
	OpIoctl         = 39
	OpBatchForget   = 42
	OpFallocate     = 43
	OpReadDirPlus   = 44
	OpRename2       = 45
	OpCopyFileRange = 47
	OpTmpfile       = 51
	OpStatx         = 52
)

// MayTell reports whether a request of the kind may change what other superblocks
// keep, and wait until they know: of READ requests among others.
func MayTell(opcode uint32) bool {
	switch opcode {
	case OpSetAttr, OpSymlink, OpMknod, OpMkdir, OpUnlink, OpRmdir,
		OpRename, OpLink, OpOpen, OpWrite, OpFsync, OpSetXAttr,
		OpRemoveXAttr, OpFlush, OpCreate, OpFallocate, OpRename2,
		OpCopyFileRange, OpTmpfile, OpIoctl:
		return true
	}
	return false
}

// ReadIn is how struct fuse_read_in begins.
type ReadIn struct {
	FH, Offset uint64
	Size       uint32
}

// LockIn is how struct fuse_lk_in begins.
type LockIn struct {
	FH, Owner, Start, End uint64
	Type                  uint32
}
