package fileio

import (
	"container/list"
	"sync"
)

// Handles keeps data files open for reading.
type Handles struct {
	Disk Disk
	mu   sync.Mutex
	open map[string]*Handle
	idle list.List // of *handle, the longest idle first
	max  int
	// drops counts the calls of Drop: a file that was opened while there was one may be what
	// it was about, and is not shared.
	drops uint64
}

// Handle is an open file that readers share.
type Handle struct {
	File
	Path string
	refs int
	gone bool // dropped: to be closed by the last reader
	idle *list.Element

	// Of Windows, under its lock: who is notified before it is closed, nil if nobody is;
	// and which parts were used once, a bit for each, beyond 64 one for several.
	closes func()
	used   uint64
}

// Close implements File.
func (f *Handle) Close() error {
	if f.closes != nil {
		f.closes()
	}
	return f.File.Close()
}

// NewHandles keeps up to max files open. Its disk is set before its use.
func NewHandles(max int) *Handles { return &Handles{open: make(map[string]*Handle), max: max} }

// Get opens path or shares it. The caller must put it back.
func (h *Handles) Get(path string) (*Handle, error) {
	found, drops := h.find(path)
	if found != nil {
		return found, nil
	}
	f, err := h.Disk.Open(path)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	if found := h.take(path); found != nil {
		h.mu.Unlock()
		_ = f.Close() // another reader was faster
		return found, nil
	}
	fresh := &Handle{File: f, Path: path, refs: 1}
	if h.drops == drops {
		h.open[path] = fresh
	} else {
		fresh.gone = true
	}
	h.mu.Unlock()
	return fresh, nil
}

func (h *Handles) find(path string) (found *Handle, drops uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.take(path), h.drops
}

func (h *Handles) take(path string) *Handle {
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

// Put gives back what get returned.
func (h *Handles) Put(f *Handle) {
	h.mu.Lock()
	f.refs--
	var victim *Handle
	if f.refs == 0 {
		if f.gone {
			victim = f
		} else {
			f.idle = h.idle.PushBack(f)
			if h.idle.Len() > h.max {
				victim = h.idle.Remove(h.idle.Front()).(*Handle)
				victim.idle = nil
				delete(h.open, victim.Path)
			}
		}
	}
	h.mu.Unlock()
	if victim != nil {
		_ = victim.Close()
	}
}

// Drop forgets path. It returns false while readers still use the file.
func (h *Handles) Drop(path string) bool {
	h.mu.Lock()
	h.drops++
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

// CloseIdle closes all files without a reader; false if there are none.
func (h *Handles) CloseIdle() bool {
	h.mu.Lock()
	var victims []*Handle
	for e := h.idle.Front(); e != nil; e = h.idle.Front() {
		f := h.idle.Remove(e).(*Handle)
		f.idle = nil
		delete(h.open, f.Path)
		victims = append(victims, f)
	}
	h.mu.Unlock()
	for _, f := range victims {
		_ = f.Close()
	}
	return len(victims) > 0
}

// Close closes all files; nobody may use them any more.
func (h *Handles) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.open {
		_ = f.Close()
	}
	clear(h.open)
	h.idle.Init()
}
