package vfs

import (
	"context"
	"sync"

	"ogw/vfs/internal/naming"
)

// Invalidator drops what a door cached, such as a kernel's dentries,
// attributes and pages. Calls come after a change committed and before it is
// acknowledged, from the goroutine that made the change, which holds no lock.
type Invalidator interface {
	// InvalidateEntry drops what is known of one name, its absence included.
	// name is in POSIX form.
	InvalidateEntry(dir Ino, name string)
	// InvalidateInode drops attributes and, with data, cached bytes.
	InvalidateInode(ino Ino, data bool)
}

// KernelInvalidator is an Invalidator with a kernel behind it, which holds
// locks while the door works for it.
type KernelInvalidator interface {
	Invalidator
	// Beside returns the Invalidator that is told of what origin's door did,
	// which has a kernel as well. Waiting for one kernel's locks while
	// another's are held could deadlock: it waits for those alone of which it
	// knows that they are let go.
	Beside(origin Invalidator) Invalidator
	// Deferred returns an Invalidator whose calls do not wait for the kernel.
	Deferred() Invalidator
}

type originKey struct{}

type origin struct {
	inv  Invalidator
	late bool
}

// WithOrigin marks the operations of ctx as made by inv's door, which knows
// of its own changes and must not be told of them.
func WithOrigin(ctx context.Context, inv Invalidator) context.Context {
	return context.WithValue(ctx, originKey{}, origin{inv: inv})
}

// WithLateOrigin is WithOrigin for changes that are acknowledged to nobody yet:
// other doors with a kernel are told in the background.
func WithLateOrigin(ctx context.Context, inv Invalidator) context.Context {
	return context.WithValue(ctx, originKey{}, origin{inv: inv, late: true})
}

// Watch registers inv until the returned function is called.
func (fs *FS) Watch(inv Invalidator) (cancel func()) { return fs.watch.add(inv) }

type event struct {
	entry bool
	ino   Ino    // the directory of an entry event
	name  string // stored name
	data  bool
}

type watchers struct {
	mu   sync.RWMutex
	list []Invalidator
}

func (w *watchers) add(inv Invalidator) func() {
	w.mu.Lock()
	w.list = append(w.list, inv)
	w.mu.Unlock()
	return sync.OnceFunc(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		for i, v := range w.list {
			if v == inv {
				w.list = append(append([]Invalidator(nil), w.list[:i]...), w.list[i+1:]...)
				return
			}
		}
	})
}

// notify tells every watcher but the origin. An entry event stands for all
// POSIX forms of a name: a file is shown under an escaped name while a
// directory shadows it.
func (w *watchers) notify(ctx context.Context, events []event) {
	if len(events) == 0 {
		return
	}
	w.mu.RLock()
	list := w.list
	w.mu.RUnlock()
	if len(list) == 0 {
		return
	}
	from, _ := ctx.Value(originKey{}).(origin)
	origin := from.inv
	for _, inv := range list {
		if k, ok := inv.(KernelInvalidator); ok && origin != nil && inv != origin {
			if inv = k.Beside(origin); from.late {
				inv = k.Deferred()
			}
		}
		for _, e := range events {
			switch {
			case !e.entry && inv == origin:
			case !e.entry:
				inv.InvalidateInode(e.ino, e.data)
			case inv != origin:
				for _, name := range naming.PosixForms(e.name) {
					inv.InvalidateEntry(e.ino, name)
				}
				inv.InvalidateInode(e.ino, true) // the directory's times and cached listing
			}
		}
	}
}

// entryChanged records that the entry of a stored name came, went or changed.
func (o *op) entryChanged(dir Ino, name string) {
	o.fs.changes.begin(dir)
	o.events = append(o.events, event{entry: true, ino: dir, name: name})
}

// inodeChanged records a change of attributes and, with data, of content.
func (o *op) inodeChanged(ino Ino, data bool) {
	o.fs.changes.begin(ino)
	o.events = append(o.events, event{ino: ino, data: data})
}

// dirMoved tells that a directory gets another place.
func (o *op) dirMoved() {
	o.fs.moves.begin()
	o.moved++
}
