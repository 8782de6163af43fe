package fusemount

import "sync"

// handleTable gives open files and directories their number in the protocol.
// Numbers begin at 1 and are used again.
type handleTable[T comparable] struct {
	mu   sync.RWMutex
	list []T // by number - 1; zero: free
	free []uint64
}

func (t *handleTable[T]) add(h T) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.free); n > 0 {
		fh := t.free[n-1]
		t.free = t.free[:n-1]
		t.list[fh-1] = h
		return fh
	}
	t.list = append(t.list, h)
	return uint64(len(t.list))
}

// get returns the zero T for a number that is not in use.
func (t *handleTable[T]) get(fh uint64) T {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if fh == 0 || fh > uint64(len(t.list)) {
		var zero T
		return zero
	}
	return t.list[fh-1]
}

func (t *handleTable[T]) remove(fh uint64) T {
	t.mu.Lock()
	defer t.mu.Unlock()
	var zero T
	if fh == 0 || fh > uint64(len(t.list)) || t.list[fh-1] == zero {
		return zero
	}
	h := t.list[fh-1]
	t.list[fh-1] = zero
	t.free = append(t.free, fh)
	return h
}

func (t *handleTable[T]) each(fn func(T)) {
	t.mu.RLock()
	list := append([]T(nil), t.list...)
	t.mu.RUnlock()
	var zero T
	for _, h := range list {
		if h != zero {
			fn(h)
		}
	}
}
