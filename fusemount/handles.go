package fusemount

import (
	"sync"

	"ogw/fusemount/ledger"
)

// handleTable gives open files and directories their number in the protocol.
// The lower half is a place in the list, from 1 on, which is used again. Of a
// mount that survives, the ledger gives the numbers.
type handleTable[T comparable] struct {
	book *ledger.Handles // may be nil

	mu   sync.RWMutex
	list []numbered[T] // by place - 1
	free []uint64      // places, without a book
}

// numbered is a handle and its number; zero: free.
type numbered[T comparable] struct {
	fh     uint64
	handle T
}

// place is where the handle with a number is in the list.
func place(fh uint64) int { return int(uint32(fh)) - 1 }

// add returns the number of h, which stands for an inode, what it was opened
// with (see openRecord), and the request that did. It fails with ledger.ErrFull alone.
func (t *handleTable[T]) add(h T, ino, flags, unique uint64) (uint64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fh := uint64(len(t.list) + 1)
	if t.book != nil {
		var err error
		if fh, err = t.book.Add(ino, flags, unique); err != nil {
			return 0, err
		}
	} else if n := len(t.free); n > 0 {
		fh = t.free[n-1]
		t.free = t.free[:n-1]
	}
	t.put(fh, h)
	return fh, nil
}

// put enters a handle that has its number.
func (t *handleTable[T]) put(fh uint64, h T) {
	for len(t.list) <= place(fh) {
		t.list = append(t.list, numbered[T]{})
	}
	t.list[place(fh)] = numbered[T]{fh, h}
}

// get returns the zero T for a number that is not in use.
func (t *handleTable[T]) get(fh uint64) T {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.at(fh)
}

func (t *handleTable[T]) at(fh uint64) (h T) {
	if i := place(fh); i >= 0 && i < len(t.list) && t.list[i].fh == fh {
		h = t.list[i].handle
	}
	return h
}

// remove takes a handle out; its number is not given again before forget.
func (t *handleTable[T]) remove(fh uint64) T {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.at(fh)
	var zero T
	if h != zero {
		t.list[place(fh)] = numbered[T]{}
	}
	return h
}

// forget follows remove, when nothing of the handle is left.
func (t *handleTable[T]) forget(fh uint64) {
	if t.book != nil {
		t.book.Remove(fh)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free = append(t.free, fh)
}

func (t *handleTable[T]) each(fn func(fh uint64, h T)) {
	t.mu.RLock()
	list := append([]numbered[T](nil), t.list...)
	t.mu.RUnlock()
	var zero T
	for _, n := range list {
		if n.handle != zero {
			fn(n.fh, n.handle)
		}
	}
}
