package fileio

import (
	"container/list"
	"errors"
	"runtime/debug"
	"sync"

	"golang.org/x/sys/unix"
)

// WindowBytes is how much of a file is mapped at a time.
const WindowBytes = 4 << 20

// errNoWindow: the file cannot be mapped, or too much is.
var errNoWindow = errors.New("no part of this file can be mapped now")

// mappable is a File whose pages can be had without copies.
type mappable interface {
	// mapped maps n bytes at off for reading.
	mapped(off int64, n int) ([]byte, error)
	// splice puts up to n bytes at off into the pipe w, as many as it has room for.
	splice(w int, off, n int64) (int64, error)
}

// Windows keeps parts of data files mapped for reading, up to a number of bytes in
// all. What nobody uses gives way, the longest unused first.
type Windows struct {
	mu   sync.Mutex
	idle list.List                     // of *Window
	max  int64                         // bytes
	room int64                         // of those that may be mapped still
	open map[*Handle]map[int64]*Window // by offset
}

// Window is a part of an open file that is mapped. Its user has the handle, too.
type Window struct {
	file *Handle
	off  int64
	data []byte
	refs int
	idle *list.Element
}

// NewWindows keeps up to so many bytes mapped.
func NewWindows(bytes int64) *Windows {
	return &Windows{max: bytes, room: bytes, open: make(map[*Handle]map[int64]*Window)}
}

// Bytes returns how many are mapped.
func (w *Windows) Bytes() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.max - w.room
}

// Get maps the part of f that holds off. f ends at end. The caller must put
// it back, and then f.
func (w *Windows) Get(f *Handle, off, end int64) (*Window, error) {
	file, ok := f.File.(mappable)
	if !ok {
		return nil, errNoWindow
	}
	off -= off % WindowBytes
	n := min(WindowBytes, Align(end-off))
	found, victims, err := w.take(f, off, n)
	unmap(victims)
	if found != nil || err != nil {
		return found, err
	}
	data, err := file.mapped(off, int(n))
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.room += n
		return nil, err
	}
	if found := w.use(f, off); found != nil { // another reader was faster
		w.room += n
		_ = unix.Munmap(data)
		return found, nil
	}
	fresh := &Window{file: f, off: off, data: data, refs: 1}
	if w.open[f] == nil {
		w.open[f] = make(map[int64]*Window)
		f.closes = func() { w.drop(f) }
	}
	w.open[f][off] = fresh
	return fresh, nil
}

// take returns the window of f at off, if there is one. Else it makes room for n
// bytes, and returns what is to be unmapped for that.
func (w *Windows) take(f *Handle, off, n int64) (found *Window, victims []*Window, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if found := w.use(f, off); found != nil {
		return found, nil, nil
	}
	for w.room < n {
		e := w.idle.Front()
		if e == nil {
			return nil, victims, errNoWindow
		}
		victims = append(victims, w.forget(e.Value.(*Window)))
	}
	w.room -= n
	return nil, victims, nil
}

// use returns the window of f at off, with one user more, if there is one. mu is held.
func (w *Windows) use(f *Handle, off int64) *Window {
	found := w.open[f][off]
	if found != nil {
		found.refs++
		w.leave(found)
	}
	return found
}

// leave takes v off the idle ones. mu is held.
func (w *Windows) leave(v *Window) {
	if v.idle != nil {
		w.idle.Remove(v.idle)
		v.idle = nil
	}
}

// forget takes back the bytes of v, which nobody uses. mu is held.
func (w *Windows) forget(v *Window) *Window {
	w.leave(v)
	delete(w.open[v.file], v.off)
	w.room += int64(len(v.data))
	return v
}

// Put gives back what Get returned.
func (w *Windows) Put(v *Window) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if v.refs--; v.refs == 0 {
		v.idle = w.idle.PushBack(v)
	}
}

// drop unmaps all of f, which has no user any more.
func (w *Windows) drop(f *Handle) {
	w.mu.Lock()
	var victims []*Window
	for _, v := range w.open[f] {
		victims = append(victims, w.forget(v))
	}
	delete(w.open, f)
	w.mu.Unlock()
	unmap(victims)
}

func unmap(list []*Window) {
	for _, v := range list {
		_ = unix.Munmap(v.data)
	}
}

// End returns where in the file the window ends.
func (v *Window) End() int64 { return v.off + int64(len(v.data)) }

// Splice puts up to n bytes at off of the file, within the window, into the pipe w.
// The pipe holds their pages: what the window shows of them until they are read
// out is what was put there.
func (v *Window) Splice(w int, off, n int64) (int64, error) {
	return v.file.File.(mappable).splice(w, off, n)
}

// Check calls ok with the bytes from off to end of the file, within the window. It
// reports what ok does, and false if not all of them are there: a file that was
// cut short, or cannot be read, is no fault of the process. ok keeps nothing.
func (v *Window) Check(off, end int64, ok func([]byte) bool) (right bool) {
	p := v.data[off-v.off : end-v.off]
	from := (off - v.off) &^ (PageBytes - 1)
	// A page that is absent would be waited for by a thread with all that Go
	// schedules there; a system call is not, and its errors are errors.
	if unix.Madvise(v.data[from:end-v.off], unix.MADV_POPULATE_READ) != nil {
		return false
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if fault := recover(); fault != nil {
			if _, is := fault.(interface{ Addr() uintptr }); !is {
				panic(fault)
			}
			right = false
		}
	}()
	return ok(p)
}
