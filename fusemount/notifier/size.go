package notifier

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// handleInoGen is FUSE's type of file handle: node ID and generation
// (FILEID_INO64_GEN of the kernel).
const handleInoGen = 0x81

// Size is the size of a file that the kernel should know.
type Size struct {
	Node uint64
	Gen  uint32
	Size int64
	// Device is the superblock's number (major:minor), Dirs are places where it
	// is mounted; their names need not be text.
	Device string
	Dirs   [][]byte
}

// Notify makes the kernel ask the server for the attributes of the file, unless it
// knows the size. The calling thread has a working directory of its own, the root.
func (s *Size) Notify() (known bool, err error) {
	// The handle's mount is named by the working directory: opening the mount
	// would ask the server, and O_PATH does not do. It leaves at once, or the
	// mount would be busy.
	if err := Enter(s.Device, s.Dirs); err != nil {
		return false, err
	}
	defer func() { _ = unix.Chdir("/") }() // cannot fail
	h := binary.NativeEndian.AppendUint32(nil, uint32(s.Node>>32))
	h = binary.NativeEndian.AppendUint32(h, uint32(s.Node))
	h = binary.NativeEndian.AppendUint32(h, s.Gen)
	fd, err := unix.OpenByHandleAt(unix.AT_FDCWD, unix.NewFileHandle(handleInoGen, h), unix.O_PATH|unix.O_CLOEXEC)
	if err != nil {
		return false, err
	}
	defer unix.Close(fd)
	var st unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_SIZE, &st); err != nil {
		return false, err
	}
	if int64(st.Size) == s.Size {
		return true, nil
	}
	return false, unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_FORCE_SYNC, unix.STATX_SIZE, &st)
}

// Enter makes that one of dirs the working directory where a superblock is
// mounted. ENOENT, if it is in none of them.
func Enter(device string, dirs [][]byte) error {
	for _, dir := range dirs {
		if unix.Chdir(string(dir)) != nil {
			continue
		}
		if Device(unix.AT_FDCWD) == device {
			return nil
		}
		_ = unix.Chdir("/") // something else is there; cannot fail
	}
	return unix.ENOENT
}

// Device returns major:minor of the superblock of a descriptor, "" if it has none.
func Device(fd int) string {
	var st unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_TYPE, &st); err != nil {
		return ""
	}
	return fmt.Sprintf("%d:%d", st.Dev_major, st.Dev_minor)
}
