package fileio

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Presence says which pages of mappings are in the page table of the process: of file
// systems whose page cache is known to be what windows need (Windows), and has shown so.
type Presence struct {
	pagemap *os.File
	scans   bool   // by an ioctl, where there is one
	dev     uint64 // of the files that it is for
}

// pagemapBytes is the length of an entry of pagemap, of which the highest bit says that
// the page is present (proc_pid_pagemap(5)).
const pagemapBytes = 8

// pagemapRead is how many entries are read at a time: those of a window.
const pagemapRead = 256

// cachedFS are the file systems that put pages of the page cache, and nothing else, into
// pipes and mappings, and change no page but by writes. Overlays may put those of another
// file, network file systems and FUSE copies.
var cachedFS = []int64{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC}

// NewPresence returns one for the files that are in dir of a disk; nil if the system does
// not say which pages are present, as in some containers and simulated kernels, or the
// file system is none of those that are known.
func NewPresence(disk Disk, dir string) *Presence {
	var fs unix.Statfs_t
	if _, known := disk.(*OS); !known || unix.Statfs(dir, &fs) != nil || !slices.Contains(cachedFS, fs.Type) {
		return nil
	}
	pagemap, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return nil
	}
	p := &Presence{pagemap: pagemap}
	for _, p.scans = range []bool{true, false} {
		if p.proves(filepath.Join(dir, "probe.tmp")) {
			return p
		}
	}
	p.Close()
	return nil
}

// Close closes p, which may be nil. Nobody uses it any more.
func (p *Presence) Close() {
	if p != nil {
		_ = p.pagemap.Close()
	}
}

// all reports whether all pages of mem are present.
func (p *Presence) all(mem []byte) bool {
	page := uint64(os.Getpagesize())
	from := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))) / page * page
	n := (uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))) + uint64(len(mem)) - from + page - 1) / page
	if p.scans {
		return p.scan(from, from+n*page)
	}
	return p.read(from/page, n)
}

// read goes by the entries of n pages.
func (p *Presence) read(from, n uint64) bool {
	var buf [pagemapRead * pagemapBytes]byte
	for n > 0 {
		some := buf[:min(uint64(len(buf)), n*pagemapBytes)]
		if k, err := p.pagemap.ReadAt(some, int64(from)*pagemapBytes); err != nil || k != len(some) {
			return false
		}
		for i := 0; i < len(some); i += pagemapBytes {
			if binary.NativeEndian.Uint64(some[i:])>>63 == 0 {
				return false
			}
		}
		from += uint64(len(some)) / pagemapBytes
		n -= uint64(len(some)) / pagemapBytes
	}
	return true
}

// pagemapScan is the ioctl of that name (Linux 6.7), half the price of reading.
const (
	pagemapScan   = 0xC0606610
	pageIsPresent = 1 << 3
)

// scanRegion is struct page_region of linux/fs.h, scanArg struct pm_scan_arg.
type scanRegion struct{ start, end, _ uint64 }

type scanArg struct {
	size, flags, start, end, walkEnd      uint64
	vec                                   *scanRegion
	vecLen, maxPages                      uint64
	inverted, mask, anyOf, returnedPieces uint64
}

// scan asks for the first region of present pages.
func (p *Presence) scan(from, to uint64) bool {
	var found scanRegion
	arg := scanArg{start: from, end: to, vec: &found, vecLen: 1, mask: pageIsPresent, returnedPieces: pageIsPresent}
	arg.size = uint64(unsafe.Sizeof(arg))
	n, _, errno := unix.Syscall(unix.SYS_IOCTL, p.pagemap.Fd(), pagemapScan, uintptr(unsafe.Pointer(&arg)))
	return errno == 0 && n == 1 && found.start == from && found.end == to
}

// proves tries with a file at path, which it makes, whether a page is present once it is
// populated, not before, and not when the page cache gave it up; and whether pipes hold
// the very page of the page cache.
func (p *Presence) proves(path string) bool {
	f, err := OpenPrivate(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return false
	}
	defer os.Remove(path)
	defer f.Close() //nolint:errcheck // nothing of it is kept
	file := osFile{f}
	now, err := file.stamp()
	if err != nil {
		return false
	}
	p.dev = now.dev
	page := make([]byte, os.Getpagesize())
	if _, err := f.WriteAt(page, 0); err != nil {
		return false
	}
	mem, err := file.mapped(0, len(page))
	if err != nil {
		return false
	}
	defer unmap(mem)
	return !p.all(mem) && populate(mem) && p.all(mem) &&
		sharesPages(file, page) && f.Truncate(0) == nil && !p.all(mem)
}

// sharesPages reports whether what is written to f at the start shows in a pipe that has
// those bytes already.
func sharesPages(f osFile, page []byte) bool {
	var p [2]int
	if unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK) != nil {
		return false
	}
	defer unix.Close(p[0])
	defer unix.Close(p[1])
	n, err := f.splice(p[1], 0, int64(len(page)))
	if err != nil || int(n) != len(page) {
		return false
	}
	written := bytes.Repeat([]byte{0xA5}, len(page))
	if _, err := f.WriteAt(written, 0); err != nil {
		return false
	}
	got, err := unix.Read(p[0], page)
	return err == nil && got == len(page) && bytes.Equal(page, written)
}
