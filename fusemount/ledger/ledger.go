package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	magic = "ogwledg2"

	headerBytes = 4096
	// maxInit bounds INIT and its answer; both have some 100 bytes.
	maxInit = 512

	// MaxFiles and MaxDirs bound what programs have open on one mount at a
	// time, beyond what a machine usually allows them.
	MaxFiles = 1 << 18
	MaxDirs  = 1 << 16
	// MaxLocks bounds the locks of a mount, as vfs/lock does.
	MaxLocks = 1 << 18
	// writeSlots is how many of the last writes are remembered, far above
	// the requests that are on their way at a time.
	writeSlots = 1 << 12
	// JournalBytes is how much may be written and not stored, at the most;
	// half a second of a fast writer.
	JournalBytes = 64 << 20
)

// ErrFormat means that the memory is not a ledger that this version knows.
var ErrFormat = errors.New("the memory of the server before cannot be read")

// Ledger is the memory of one mount. It is safe for concurrent use.
type Ledger struct {
	fd  int
	mem []byte

	Files   *Handles
	Dirs    *Handles
	Locks   *Locks
	Owners  *Owners
	Writes  *Writes
	Journal *Journal

	Listings *Listings
}

// header is the beginning of the memory.
type header struct {
	magic   [8]byte
	mount   uint64
	clean   uint32
	initLen uint32 // 0: INIT was not recorded yet
	outLen  uint32
	device  [32]byte // text, ended by 0
	shared  uint32   // further mounts may show the superblock
	primary uint32   // the kernel keeps names of this one
	root    uint64   // inode of the superblock's root
	init    [maxInit]byte
	out     [maxInit]byte
	// listings are 0 in what an older server wrote.
	listings [listingSlots]listingSlot
}

// regions are the parts behind the header, and the whole length.
func regions() (files, dirs, locks, owners, writes, journal, end int) {
	files = headerBytes
	dirs = files + tableBytes(MaxFiles, unsafe.Sizeof(handleSlot{}))
	locks = dirs + tableBytes(MaxDirs, unsafe.Sizeof(handleSlot{}))
	owners = locks + tableBytes(MaxLocks, unsafe.Sizeof(lockSlot{}))
	writes = owners + tableBytes(MaxLocks, unsafe.Sizeof(ownerSlot{}))
	journal = writes + pages(writeSlots*int(unsafe.Sizeof(writeSlot{})))
	return files, dirs, locks, owners, writes, journal, journal + headerBytes + JournalBytes
}

// pages rounds up to whole pages.
func pages(n int) int { return (n + headerBytes - 1) / headerBytes * headerBytes }

// New makes an empty ledger. It takes memory as it is used.
func New() (*Ledger, error) {
	fd, err := unix.MemfdCreate("ogw-mount", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memory for a mount that survives: %w", err)
	}
	_, _, _, _, _, _, end := regions()
	if err := unix.Ftruncate(fd, int64(end)); err != nil {
		return nil, errors.Join(fmt.Errorf("memory for a mount that survives: %w", err), unix.Close(fd))
	}
	l, err := load(fd)
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	h := l.header()
	h.mount = rand.Uint64()
	copy(h.magic[:], magic)
	return l, nil
}

// Open maps the ledger of a server that is gone, and takes fd over unless it
// fails. ErrFormat if it is none.
func Open(fd int) (*Ledger, error) {
	var st unix.Stat_t
	_, _, _, _, _, _, end := regions()
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if st.Size != int64(end) {
		return nil, fmt.Errorf("%w: it has %d bytes in place of %d", ErrFormat, st.Size, end)
	}
	l, err := load(fd)
	if err != nil {
		return nil, err
	}
	if string(l.header().magic[:]) != magic {
		return nil, errors.Join(ErrFormat, unix.Munmap(l.mem))
	}
	return l, nil
}

func load(fd int) (*Ledger, error) {
	files, dirs, locks, owners, writes, journal, end := regions()
	mem, err := unix.Mmap(fd, 0, end, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("memory for a mount that survives: %w", err)
	}
	l := &Ledger{fd: fd, mem: mem}
	l.Listings = newListings(&l.header().listings)
	l.Files = &Handles{t: newTable[handleSlot](mem[files:], MaxFiles)}
	l.Dirs = &Handles{t: newTable[handleSlot](mem[dirs:], MaxDirs)}
	l.Locks = newLocks(newTable[lockSlot](mem[locks:], MaxLocks))
	l.Owners = newOwners(newTable[ownerSlot](mem[owners:], MaxLocks))
	l.Writes = &Writes{slots: (*[writeSlots]writeSlot)(unsafe.Pointer(&mem[writes])), unanswered: make(map[uint64]struct{})}
	l.Journal, err = newJournal(mem[journal : journal+headerBytes+JournalBytes])
	if err != nil {
		return nil, errors.Join(err, unix.Munmap(mem))
	}
	return l, nil
}

func (l *Ledger) header() *header { return (*header)(unsafe.Pointer(&l.mem[0])) }

// FD returns the memory's descriptor, which stays the ledger's.
func (l *Ledger) FD() int { return l.fd }

// Mount is a random number that names the mount.
func (l *Ledger) Mount() uint64 { return l.header().mount }

// SetInit records INIT and its answer, before that is given.
func (l *Ledger) SetInit(in, out []byte) error {
	if len(in) > maxInit || len(out) > maxInit {
		return fmt.Errorf("INIT of %d bytes, answer of %d", len(in), len(out))
	}
	h := l.header()
	copy(h.init[:], in)
	copy(h.out[:], out)
	h.outLen = uint32(len(out))
	atomic.StoreUint32(&h.initLen, uint32(len(in)))
	return nil
}

// Init returns copies of INIT and its answer; nil if there was none.
func (l *Ledger) Init() (in, out []byte) {
	h := l.header()
	n, m := atomic.LoadUint32(&h.initLen), h.outLen
	if n == 0 || n > maxInit || m > maxInit {
		return nil, nil
	}
	return append(in, h.init[:n]...), append(out, h.out[:m]...)
}

// SetClean notes whether the server is about to leave in order, with nothing
// that was not reported to the kernel or the store.
func (l *Ledger) SetClean(clean bool) {
	v := uint32(0)
	if clean {
		v = 1
	}
	atomic.StoreUint32(&l.header().clean, v)
}

// Clean reports whether the last server left in order.
func (l *Ledger) Clean() bool { return atomic.LoadUint32(&l.header().clean) == 1 }

// Close gives the memory back; what is in it stays as long as somebody has it.
func (l *Ledger) Close() error { return errors.Join(unix.Munmap(l.mem), unix.Close(l.fd)) }

// SetDevice records the number of the superblock (major:minor), once the kernel
// has given it one.
func (l *Ledger) SetDevice(device string) { copy(l.header().device[:], device+"\x00") }

// Device returns it.
func (l *Ledger) Device() string {
	text, _, _ := bytes.Cut(l.header().device[:], []byte{0})
	return string(text)
}

// SetRoot records the inode that the superblock shows, before it is held.
func (l *Ledger) SetRoot(ino uint64) { l.header().root = ino }

// Root returns it.
func (l *Ledger) Root() uint64 { return l.header().root }

// SetPrimary records whether the kernel keeps the names of the superblock.
func (l *Ledger) SetPrimary(primary bool) {
	v := uint32(0)
	if primary {
		v = 1
	}
	atomic.StoreUint32(&l.header().primary, v)
}

// Primary reports whether it does.
func (l *Ledger) Primary() bool { return atomic.LoadUint32(&l.header().primary) == 1 }

// SetShareable records that further mounts may show the superblock.
func (l *Ledger) SetShareable() { l.header().shared = 1 }

// Shareable reports whether they may.
func (l *Ledger) Shareable() bool { return l.header().shared == 1 }
