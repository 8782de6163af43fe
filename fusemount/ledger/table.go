package ledger

import (
	"errors"
	"sync"
	"sync/atomic"
	"unsafe"
)

// ErrFull means that a table has no room.
var ErrFull = errors.New("too much is open on a mount that survives")

// slot is a record of a table. Its state word comes first: 0 means free.
type slot interface {
	handleSlot | lockSlot | ownerSlot
}

// table is an array of records of which some are in use.
type table[T slot] struct {
	high  *uint32 // slots that were ever in use; in the memory
	slots unsafe.Pointer
	max   int

	mu   sync.Mutex
	free []uint32
}

// tableHead is what precedes the slots.
const tableHead = 64

func tableBytes(n int, size uintptr) int { return pages(tableHead + n*int(size)) }

// newTable finds the free slots of what is in mem.
func newTable[T slot](mem []byte, n int) *table[T] {
	t := &table[T]{high: (*uint32)(unsafe.Pointer(&mem[0])), slots: unsafe.Pointer(&mem[tableHead]), max: n}
	*t.high = min(*t.high, uint32(n))
	for i := int(*t.high) - 1; i >= 0; i-- {
		if atomic.LoadUint32(t.state(uint32(i))) == 0 {
			t.free = append(t.free, uint32(i))
		}
	}
	return t
}

func (t *table[T]) at(i uint32) *T {
	var zero T
	return (*T)(unsafe.Add(t.slots, uintptr(i)*unsafe.Sizeof(zero)))
}

func (t *table[T]) state(i uint32) *uint32 { return (*uint32)(unsafe.Pointer(t.at(i))) }

// take returns a free slot, to be filled and then set.
func (t *table[T]) take() (i uint32, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.free); n > 0 {
		i = t.free[n-1]
		t.free = t.free[:n-1]
		return i, nil
	}
	if int(*t.high) == t.max {
		return 0, ErrFull
	}
	i = *t.high
	atomic.StoreUint32(t.high, i+1)
	return i, nil
}

// set makes a slot count.
func (t *table[T]) set(i uint32) { atomic.StoreUint32(t.state(i), 1) }

func (t *table[T]) used(i uint32) bool {
	return i < atomic.LoadUint32(t.high) && atomic.LoadUint32(t.state(i)) != 0
}

// drop frees a slot that was taken.
func (t *table[T]) drop(i uint32) {
	atomic.StoreUint32(t.state(i), 0)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free = append(t.free, i)
}

// each calls fn for every slot in use.
func (t *table[T]) each(fn func(i uint32, s *T)) {
	for i := range atomic.LoadUint32(t.high) {
		if t.used(i) {
			fn(i, t.at(i))
		}
	}
}
