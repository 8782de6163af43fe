package local

import (
	"container/list"
	"sync"
)

// handles keeps data files open for reading.
type handles struct {
	disk disk
	mu   sync.Mutex
	open map[string]*handle
	idle list.List // of *handle, the longest idle first
	max  int
}

// handle is an open file that readers share.
type handle struct {
	diskFile
	path string
	refs int
	gone bool // dropped: to be closed by the last reader
	idle *list.Element
}

// newHandles keeps up to max files open. Its disk is set before its use.
func newHandles(max int) *handles { return &handles{open: make(map[string]*handle), max: max} }

// get opens path or shares it. The caller must put it back.
func (h *handles) get(path string) (*handle, error) {
	if found := h.find(path); found != nil {
		return found, nil
	}
	f, err := h.disk.open(path)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	if found := h.take(path); found != nil {
		h.mu.Unlock()
		_ = f.Close() // another reader was faster
		return found, nil
	}
	fresh := &handle{diskFile: f, path: path, refs: 1}
	h.open[path] = fresh
	h.mu.Unlock()
	return fresh, nil
}

func (h *handles) find(path string) *handle {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.take(path)
}

func (h *handles) take(path string) *handle {
	found := h.open[path]
	if found == nil {
		return nil
	}
	found.refs++
	if found.idle != nil {
		h.idle.Remove(found.idle)
		found.idle = nil
	}
	return found
}

// put gives back what get returned.
func (h *handles) put(f *handle) {
	h.mu.Lock()
	f.refs--
	var victim *handle
	if f.refs == 0 {
		if f.gone {
			victim = f
		} else {
			f.idle = h.idle.PushBack(f)
			if h.idle.Len() > h.max {
				victim = h.idle.Remove(h.idle.Front()).(*handle)
				victim.idle = nil
				delete(h.open, victim.path)
			}
		}
	}
	h.mu.Unlock()
	if victim != nil {
		_ = victim.Close()
	}
}

// drop forgets path. It returns false while readers still use the file.
func (h *handles) drop(path string) bool {
	h.mu.Lock()
	f := h.open[path]
	if f == nil {
		h.mu.Unlock()
		return true
	}
	delete(h.open, path)
	f.gone = true
	busy := f.refs > 0
	if f.idle != nil {
		h.idle.Remove(f.idle)
		f.idle = nil
	}
	h.mu.Unlock()
	if !busy {
		_ = f.Close()
	}
	return !busy
}

// closeIdle closes all files without a reader; false if there are none.
func (h *handles) closeIdle() bool {
	h.mu.Lock()
	var victims []*handle
	for e := h.idle.Front(); e != nil; e = h.idle.Front() {
		f := h.idle.Remove(e).(*handle)
		f.idle = nil
		delete(h.open, f.path)
		victims = append(victims, f)
	}
	h.mu.Unlock()
	for _, f := range victims {
		_ = f.Close()
	}
	return len(victims) > 0
}

// close closes all files; nobody may use them any more.
func (h *handles) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.open {
		_ = f.Close()
	}
	clear(h.open)
	h.idle.Init()
}
