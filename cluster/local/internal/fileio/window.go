package fileio

import (
	"container/list"
	"errors"
	"sync"
	"time"
)

const (
	// WindowBytes is how much of a file is mapped, and verified, at a time.
	WindowBytes = 1 << 20
	// windowRest is how long a window is kept that nobody uses: the memory counts as
	// the process's where it is shown.
	windowRest = 20 * time.Second
)

// These are of Windows.Splice, for its tests and for debugging.
var (
	errNoPages = errors.New("the pages of this file cannot be had")
	errWrong   = errors.New("the pages are not right")
	errChanged = errors.New("the file was changed meanwhile")
)

// pageFile is a File whose pages can be had without copies.
type pageFile interface {
	// mapped maps n bytes at off for reading, as a mapping that is joined with no other.
	mapped(off int64, n int) ([]byte, error)
	// splice puts up to n bytes at off into the pipe w, as many as it has room for.
	splice(w int, off, n int64) (int64, error)
	// stamp returns the state that the file is in.
	stamp() (stamp, error)
}

// Windows splices data files, and keeps parts of them mapped to know which pages are
// those that were verified, up to a number of bytes in all. It is safe for concurrent
// use.
//
// A window is populated once, when it is made, and nobody touches its memory. The
// kernel takes a page out of the page cache only after it took it out of all page
// tables. So a page that is in the table of a window has been the one in the page cache
// ever since.
type Windows struct {
	presence *Presence
	mu       sync.Mutex
	idle     list.List                     // of *window, the longest unused first
	max      int64                         // bytes
	room     int64                         // of those that may be mapped still
	open     map[*Handle]map[int64]*window // by offset
	sweeps   bool                          // a sweep will come
}

// window is a part of an open file that is mapped. Who uses it uses the handle, too.
type window struct {
	file  *Handle
	off   int64
	data  []byte // not to be touched; nil while it is made
	bytes int64  // that it takes of the room
	stamp stamp  // of the file, when it was verified
	refs  int
	gone  bool // nobody finds it any more: the last user unmaps it
	since time.Time
	idle  *list.Element
}

// NewWindows keeps up to so many bytes mapped, none without a Presence.
func NewWindows(bytes int64, p *Presence) *Windows {
	return &Windows{presence: p, max: bytes, room: bytes, open: make(map[*Handle]map[int64]*window)}
}

// Close gives back what the Windows has, of files that all are closed.
func (w *Windows) Close() { w.presence.Close() }

// Bytes returns how many are mapped.
func (w *Windows) Bytes() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.max - w.room
}

// Part is what of a file is wanted.
type Part struct {
	Off, End int64 // within one window
	Size     int64 // of what Right knows, from the start of the file
	// Right verifies what ReadAt returns from off to end. It may look at more.
	Right func(off, end int64) bool
}

// Splice puts p of f into the pipe w, as much as there is room for, and returns how
// many bytes, at least one. What it puts there was verified: by then, for what is in the
// pipe is not given up by the page cache; or when a window was made, and its pages have
// been there since. A change of the file meanwhile shows in its times.
func (w *Windows) Splice(pipe int, f *Handle, p Part) (int64, error) {
	file, able := f.File.(pageFile)
	if !able {
		return 0, errNoPages
	}
	before, err := file.stamp()
	if err != nil {
		return 0, err
	}
	v := w.get(f, before, p)
	defer w.put(v)
	n, err := file.splice(pipe, p.Off, p.End-p.Off)
	switch {
	case err != nil:
		return 0, err
	case n == 0:
		return 0, errNoPages
	case !w.shows(v, p.Off, p.Off+n) && !p.Right(p.Off, p.Off+n):
		return 0, errWrong
	}
	after, err := file.stamp()
	if err == nil && after != before {
		err = errChanged
	}
	return n, err
}

// shows reports whether the pages of the file from off to end are those that were
// verified for v, and have been all the time. Nil shows nothing.
func (w *Windows) shows(v *window, off, end int64) bool {
	if v == nil {
		return false
	}
	if w.presence.all(v.data[off-v.off : end-v.off]) {
		return true
	}
	w.retire(v)
	return false
}

// get returns the window of f that p is in. There is none of what is used for the first
// time, or while another makes it: that would take longer than to verify what is wanted.
func (w *Windows) get(f *Handle, now stamp, p Part) *window {
	if w.presence == nil || w.presence.dev != now.dev {
		return nil
	}
	off := p.Off - p.Off%WindowBytes
	v, fresh := w.find(f, off)
	if fresh {
		return w.build(v, now, p)
	}
	if v != nil && v.stamp != now {
		w.retire(v)
		w.put(v)
		return nil
	}
	return v
}

// find returns the window of f at off with one user more, or one that its caller has to
// make. Windows give way to none: of files that all are read again and again, and are
// more than may be mapped, a part is served from windows so, and not none at all.
func (w *Windows) find(f *Handle, off int64) (v *window, fresh bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if v := w.open[f][off]; v != nil {
		if v.data == nil {
			return nil, false
		}
		v.refs++
		w.leave(v)
		return v, false
	}
	mark := uint64(1) << (off / WindowBytes % 64)
	if f.used&mark == 0 || w.room < WindowBytes {
		f.used |= mark
		return nil, false
	}
	w.room -= WindowBytes
	v = &window{file: f, off: off, bytes: WindowBytes, refs: 1}
	if w.open[f] == nil {
		w.open[f] = make(map[int64]*window)
		f.closes = func() { w.drop(f) }
	}
	w.open[f][off] = v
	return v, true
}

// build maps and verifies v, and returns it; nil, and v is gone, if the file is not right:
// then nobody finds v with data. What happens to the file meanwhile shows later: in its
// pages, or in its times.
func (w *Windows) build(v *window, now stamp, p Part) *window {
	end := min(v.off+WindowBytes, p.Size)
	data, err := v.file.File.(pageFile).mapped(v.off, int(end-v.off))
	right := err == nil && populate(data) && p.Right(v.off, end)
	w.mu.Lock()
	v.stamp, v.data = now, data
	if !right {
		w.discard(v)
	}
	w.mu.Unlock()
	if !right {
		w.put(v)
		return nil
	}
	return v
}

// leave takes v off the idle ones. mu is held.
func (w *Windows) leave(v *window) {
	if v.idle != nil {
		w.idle.Remove(v.idle)
		v.idle = nil
	}
}

// forget has nobody find v any more. mu is held.
func (w *Windows) forget(v *window) {
	w.leave(v)
	if !v.gone {
		v.gone = true
		delete(w.open[v.file], v.off)
	}
}

// discard has nobody find v any more, of which pages are wrong, were given up or changed.
// Another is made when that part is used twice again. mu is held.
func (w *Windows) discard(v *window) {
	w.forget(v)
	v.file.used &^= uint64(1) << (v.off / WindowBytes % 64)
}

// retire discards v.
func (w *Windows) retire(v *window) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.discard(v)
}

// put gives back what get returned.
func (w *Windows) put(v *window) {
	if v == nil {
		return
	}
	w.mu.Lock()
	v.refs--
	last := v.refs == 0 && v.gone
	if v.refs == 0 && !v.gone {
		v.since = time.Now()
		v.idle = w.idle.PushBack(v)
		w.plan()
	}
	w.mu.Unlock()
	if last {
		w.unmap(v)
	}
}

// plan has what is idle swept. mu is held.
func (w *Windows) plan() {
	if !w.sweeps {
		w.sweeps = true
		time.AfterFunc(windowRest/2, w.sweep)
	}
}

func (w *Windows) sweep() {
	w.release(time.Now().Add(-windowRest))
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sweeps = false; w.room < w.max {
		w.plan()
	}
}

// release unmaps what nobody used since then.
func (w *Windows) release(then time.Time) {
	var victims []*window
	w.mu.Lock()
	for e := w.idle.Front(); e != nil && !e.Value.(*window).since.After(then); e = w.idle.Front() {
		v := e.Value.(*window)
		w.forget(v)
		victims = append(victims, v)
	}
	w.mu.Unlock()
	w.unmap(victims...)
}

// drop unmaps all of f, which has no user any more.
func (w *Windows) drop(f *Handle) {
	var victims []*window
	w.mu.Lock()
	for _, v := range w.open[f] {
		w.forget(v)
		victims = append(victims, v)
	}
	delete(w.open, f)
	w.mu.Unlock()
	w.unmap(victims...)
}

// unmap takes the memory of windows, which nobody has any more, back.
func (w *Windows) unmap(victims ...*window) {
	var bytes int64
	for _, v := range victims {
		unmap(v.data)
		bytes += v.bytes
	}
	w.mu.Lock()
	w.room += bytes
	w.mu.Unlock()
}
