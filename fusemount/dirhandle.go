package fusemount

import (
	"fmt"
	"ogw/vfs"
	"sync"
)

// maxPositions bounds the positions that one open directory remembers, some
// 50 bytes each. Of a longer listing the older half is forgotten: seekdir
// beyond that fails, while reading on and rewinddir always work.
const maxPositions = 1 << 20

// First offsets of a listing: behind ".", behind "..", behind the first entry.
const (
	offDot uint64 = iota + 1
	offDotDot
	offFirst
)

// dirHandle is one open directory. The VFS continues a listing by opaque
// positions, the kernel by numbers: number offFirst+i stands behind the
// entry at position list[i].
type dirHandle struct {
	ino vfs.Ino
	// restored tells that positions were given out by the server before.
	restored bool

	mu   sync.Mutex
	from *vfs.DirStream
	base uint64   // positions forgotten before list[0]
	list []string // positions, in the order in which they were given out
}

// position returns where the listing goes on behind offset.
func (d *dirHandle) position(offset uint64) (string, error) {
	if offset < offFirst {
		return "", nil
	}
	i := offset - offFirst
	if i < d.base || i-d.base >= uint64(len(d.list)) {
		return "", fmt.Errorf("%w: directory offset %d is not known any more", vfs.ErrInvalid, offset)
	}
	return d.list[i-d.base], nil
}

// number returns the offset of the entry at pos, which follows the one at
// offset prev. Read again, an entry has its old number, so that every number
// given out stays right.
func (d *dirHandle) number(prev uint64, pos string) uint64 {
	next := max(prev+1, offFirst)
	if i := next - offFirst; i >= d.base && i-d.base < uint64(len(d.list)) && d.list[i-d.base] == pos {
		return next
	}
	d.list = append(d.list, pos)
	if len(d.list) > maxPositions {
		half := len(d.list) / 2
		d.list = append([]string(nil), d.list[half:]...)
		d.base += uint64(half)
	}
	return offFirst + d.base + uint64(len(d.list)) - 1
}
