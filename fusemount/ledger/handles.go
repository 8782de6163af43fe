package ledger

import "sync/atomic"

// handleSlot is one open file or directory.
type handleSlot struct {
	_     uint32 // state
	turn  uint32 // how often the slot was used
	ino   uint64
	flags uint64
	// unique is the request that opened it: sent again, it opens nothing else.
	unique uint64
}

// Handles are what programs have open, by the number that the kernel has for it.
type Handles struct{ t *table[handleSlot] }

// turnShift puts the turn above the number of the slot, which begins at 1.
const turnShift = 32

// Add records something open and returns its number.
func (h *Handles) Add(ino, flags, unique uint64) (fh uint64, err error) {
	i, err := h.t.take()
	if err != nil {
		return 0, err
	}
	s := h.t.at(i)
	s.turn++
	s.ino, s.flags, s.unique = ino, flags, unique
	fh = uint64(s.turn)<<turnShift | uint64(i+1)
	h.t.set(i)
	return fh, nil
}

// Mark sets flags beside those that Add was given.
func (h *Handles) Mark(fh, flags uint64) {
	if h.has(fh) {
		atomic.OrUint64(&h.t.at(uint32(fh)-1).flags, flags)
	}
}

// Unmark takes flags away.
func (h *Handles) Unmark(fh, flags uint64) {
	if h.has(fh) {
		atomic.AndUint64(&h.t.at(uint32(fh)-1).flags, ^flags)
	}
}

// has reports whether a number is in use.
func (h *Handles) has(fh uint64) bool {
	i := uint32(fh) - 1
	return uint32(fh) != 0 && h.t.used(i) && h.t.at(i).turn == uint32(fh>>turnShift)
}

// Remove ends one that Add returned; another number is ignored.
func (h *Handles) Remove(fh uint64) {
	if h.has(fh) {
		h.t.drop(uint32(fh) - 1)
	}
}

// Each calls fn for all, in no order.
func (h *Handles) Each(fn func(fh, ino, flags, unique uint64)) {
	h.t.each(func(i uint32, s *handleSlot) { fn(uint64(s.turn)<<turnShift|uint64(i+1), s.ino, s.flags, s.unique) })
}
