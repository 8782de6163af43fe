package feed

import (
	"context"
	"slices"
	"sync"
	"time"

	"ogw/vfs/internal/naming"
	"ogw/vfs/internal/record"
)

// StaleBound is how long what was read from the store is believed where other
// processes may change it.
const StaleBound = time.Second

// Event is one change. Entry reports whether it is one of the name in the directory
// Ino, else it is one of the inode, with Data also of its bytes.
type Event struct {
	Entry bool
	Ino   record.Ino
	Name  string // stored name
	Data  bool
	Moved bool // a directory lists another parent, which its origin does not see either

	fileMoved bool // counted by fileMoves
}

// Feed reports the changes that this process makes.
type Feed struct {
	complete bool
	live     func() error // nil: always
	// open is notified first, of inodes whose record or content is another now.
	open func(record.Ino)

	mu   sync.RWMutex
	list []Invalidator // replaced, never changed

	changes   changeCounts
	moves     moveClock // of directories
	fileMoves [fileMoveSlots]moveClock
}

// New returns a Feed. complete reports whether nobody else changes the store, as long
// as live, which may be nil, returns nil. open is notified of the inodes that change
// before any watcher, for the files that this process has open.
func New(complete bool, live func() error, open func(record.Ino)) *Feed {
	return &Feed{complete: complete, live: live, open: open}
}

// Complete reports whether all changes of the store are reported here: what was
// not reported did not change.
func (f *Feed) Complete() bool { return f.complete }

// Current reports whether what was read at a time, and is not known to have
// changed, may still be taken for what the store holds.
func (f *Feed) Current(at time.Time) bool {
	if f.complete {
		return f.live == nil || f.live() == nil
	}
	return time.Since(at) < StaleBound
}

// Watch registers inv until the returned function is called.
func (f *Feed) Watch(inv Invalidator) (cancel func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(slices.Clip(f.list), inv)
	return sync.OnceFunc(func() { f.forget(inv) })
}

func (f *Feed) forget(inv Invalidator) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := slices.Index(f.list, inv); i >= 0 {
		f.list = slices.Delete(slices.Clone(f.list), i, i+1)
	}
}

// Notify notifies every watcher but the origin of ctx. An entry event stands for all
// POSIX forms of a name: a file is shown under an escaped name while a
// directory shadows it.
func (f *Feed) Notify(ctx context.Context, events ...Event) { f.notify(ctx, true, events) }

// notify is Notify of what is known to have happened, or may have: the origin, who was answered
// by an error then, learns of that later.
func (f *Feed) notify(ctx context.Context, known bool, events []Event) {
	if len(events) == 0 {
		return
	}
	f.mu.RLock()
	list := f.list
	f.mu.RUnlock()
	if len(list) == 0 {
		return
	}
	from, _ := ctx.Value(originKey{}).(origin)
	for _, inv := range list {
		k, kernel := inv.(KernelInvalidator)
		own := inv == from.inv
		switch {
		case own && !kernel:
			continue
		case own:
			inv = k.Deferred()
		case kernel && from.inv != nil:
			if inv = k.Beside(from.inv); from.late {
				inv = k.Deferred()
			}
		}
		for i := range events {
			if e := &events[i]; !own || !known || e.Moved {
				e.notify(inv)
			}
		}
	}
}

// RecallAttrs has kernels drop the attributes that they keep of inodes.
func (f *Feed) RecallAttrs(inodes []record.Ino) {
	f.mu.RLock()
	list := f.list
	f.mu.RUnlock()
	for _, inv := range list {
		if k, ok := inv.(KernelInvalidator); ok {
			k.RecallAttrs(inodes)
		}
	}
}

func (e *Event) notify(inv Invalidator) {
	if !e.Entry {
		if e.Moved {
			inv.InvalidateEntry(e.Ino, "..") // a listing under way may bring the old one
		}
		inv.InvalidateInode(e.Ino, e.Data)
		return
	}
	for _, name := range naming.PosixForms(e.Name) {
		inv.InvalidateEntry(e.Ino, name)
	}
	inv.InvalidateInode(e.Ino, true) // the directory's times and cached listing
}
