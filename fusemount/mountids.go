package fusemount

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// listRoot stands for the root of the mount namespace (LSMT_ROOT).
	listRoot = ^uint64(0)
	// listStep is how many mounts are listed at a time.
	listStep = 512
	// statmountBasic asks for the IDs of a mount (STATMOUNT_MNT_BASIC).
	statmountBasic = 2
)

// mountAnswer is the beginning of struct statmount of the kernel.
type mountAnswer struct {
	_     [40]byte
	id    uint64
	_     uint64 // of the parent
	oldID uint32 // that of the mount table, which is used again
	_     [512 - 60]byte
}

// mountIDs returns the unique IDs of the mounts by those that the mount table
// has; none where the kernel does not report it (before Linux 6.8).
func mountIDs() map[uint32]uint64 {
	ids := make(map[uint32]uint64)
	var list [listStep]uint64
	for last := uint64(0); ; {
		q := newMountRequest(listRoot, last)
		n, _, errno := unix.Syscall6(unix.SYS_LISTMOUNT, uintptr(unsafe.Pointer(&q)), uintptr(unsafe.Pointer(&list)), listStep, 0, 0, 0)
		if errno != 0 || n == 0 {
			return ids
		}
		for _, id := range list[:n] {
			var a mountAnswer
			if statMount(id, statmountBasic, unsafe.Pointer(&a), unsafe.Sizeof(a)) == 0 {
				ids[a.oldID] = id
			}
		}
		last = list[n-1]
	}
}

// mountRequest is struct mnt_id_req of the kernel, in its first version.
type mountRequest struct {
	size, spare uint32
	id, param   uint64
}

func newMountRequest(id, param uint64) mountRequest {
	return mountRequest{size: uint32(unsafe.Sizeof(mountRequest{})), id: id, param: param}
}

func statMount(id, mask uint64, answer unsafe.Pointer, length uintptr) unix.Errno {
	q := newMountRequest(id, mask)
	_, _, errno := unix.Syscall6(unix.SYS_STATMOUNT, uintptr(unsafe.Pointer(&q)), uintptr(answer), length, 0, 0, 0)
	return errno
}

// inTree reports whether a mount is attached in this mount namespace.
func inTree(id uint64) bool {
	var answer [1 << 10]byte
	return statMount(id, 0, unsafe.Pointer(&answer), unsafe.Sizeof(answer)) != unix.ENOENT
}
