package fileio

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stamp tells the states of a file apart.
type stamp struct {
	dev          uint64
	size         int64
	mtime, ctime int64 // nanoseconds
}

func stampOf(fd int) (stamp, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return stamp{}, err
	}
	return stamp{st.Dev, st.Size, st.Mtim.Nano(), st.Ctim.Nano()}, nil
}

// mapFile maps n bytes at off of a file for reading. A page that nobody may touch lies
// behind the mapping: the kernel joins neighbours of one file, and maps pages around one
// that is touched.
func mapFile(fd int, off int64, n int) ([]byte, error) {
	page := os.Getpagesize()
	n = (n + page - 1) / page * page
	at, err := unix.MmapPtr(-1, 0, nil, uintptr(n+page), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	mem := unsafe.Slice((*byte)(at), n)
	if _, err := unix.MmapPtr(fd, off, at, uintptr(n), unix.PROT_READ, unix.MAP_SHARED|unix.MAP_FIXED); err != nil {
		unmap(mem)
		return nil, err
	}
	return mem, nil
}

// unmap takes back what mapFile returned; nil is nothing.
func unmap(mem []byte) {
	if mem != nil {
		_ = unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(mem)), uintptr(len(mem)+os.Getpagesize()))
	}
}

// populate makes the pages of a mapping present.
func populate(mem []byte) bool { return unix.Madvise(mem, unix.MADV_POPULATE_READ) == nil }
