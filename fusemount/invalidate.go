package fusemount

import (
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"ogw/vfs"
)

const (
	// introWindow is how long after its handler returned the write of a reply
	// may take; beyond it, a notification that met no inode is final. Replies
	// are written by the handler's own goroutine, so only preemption delays
	// them: 20 ms is several time slices of a loaded machine.
	introWindow = 20 * time.Millisecond
	// introRetry is the pause between repeated notifications in that window.
	introRetry = 500 * time.Microsecond
	// introSlots stamps are kept, by hash of the inode; a collision costs a
	// needless retry.
	introSlots = 8192
	// deferredMax bounds the queue of deferred notifications. Beyond it,
	// whoever adds waits up to deferredWait, then the notification is lost
	// and logged: the kernel's cache is stale until its timeout.
	deferredMax  = 4096
	deferredWait = time.Second
	// tellWait bounds how long the change of one superblock waits until
	// another's caches know of it. It takes microseconds, unless what they wait
	// for (a READ, a request that holds a directory) waits for a slow engine.
	tellWait = time.Second
	// maxUntimed bounds the threads of requests that wait for the kernel without
	// that bound. The others are left for the READs that those wait for.
	maxUntimed = maxLoopThreads / 2
)

var _ vfs.KernelInvalidator = (*invalidator)(nil)

// kernelNotifier sends notifications to the kernel.
type kernelNotifier interface {
	InodeNotify(node uint64, off, length int64) fuse.Status
	EntryNotify(parent uint64, name string) fuse.Status
}

// notifierBox has one type for all of them, as atomic.Value wants.
type notifierBox struct{ kernelNotifier }

// kernel returns the notifier; nil before there is one.
func (v *invalidator) kernel() kernelNotifier {
	b, _ := v.server.Load().(notifierBox)
	return b.kernelNotifier
}

// invalidator notifies the kernel of what other doors changed.
type invalidator struct {
	f       *rawFS
	server  atomic.Value // of notifierBox
	changes atomic.Uint64
	intro   [introSlots]atomic.Int64 // nanoseconds since f.started
	untimed atomic.Int32             // threads in atOnce that wait without a bound

	queue chan func()
	stop  sync.Once
	done  chan struct{}
}

func (v *invalidator) init(f *rawFS) {
	v.f = f
	v.queue = make(chan func(), deferredMax)
	v.done = make(chan struct{})
}

// run serves the queue of deferred notifications until close.
func (v *invalidator) run() {
	for {
		select {
		case fn := <-v.queue:
			fn()
		case <-v.done:
			return
		}
	}
}

func (v *invalidator) close() { v.stop.Do(func() { close(v.done) }) }

// count returns the number of changes notified so far. A handler reads it before
// it asks the VFS and again before it answers.
func (v *invalidator) count() uint64 { return v.changes.Load() }

// stamp notes that a reply which may make ino known to the kernel is about
// to be written. It comes before the handler's last look at count.
func (v *invalidator) stamp(ino vfs.Ino) {
	v.intro[uint64(ino)%introSlots].Store(int64(time.Since(v.f.started)))
}

// InvalidateEntry drops a name, its absence included.
func (v *invalidator) InvalidateEntry(dir vfs.Ino, name string) {
	v.changes.Add(1)
	v.entry(dir, name)
}

// InvalidateInode drops attributes and, with data, pages.
func (v *invalidator) InvalidateInode(ino vfs.Ino, data bool) {
	v.changes.Add(1)
	v.f.privs.moved()
	v.changed(ino, data)
}

// Beside returns the Invalidator that reports the change of another superblock before its
// request is answered (see doc.go).
func (v *invalidator) Beside(origin vfs.Invalidator) vfs.Invalidator {
	if o, ok := origin.(*invalidator); !ok || !v.f.conn.sameSet(o.f.conn) {
		return v.Deferred()
	}
	return beside{v}
}

// Deferred returns an Invalidator whose calls do not wait for the kernel.
func (v *invalidator) Deferred() vfs.Invalidator { return deferred{v} }

// dropUnlinked has the kernel forget names that another gateway removed: it drops those only
// that are used, and holds the inodes of the others until its memory is short.
func (f *rawFS) dropUnlinked(list []vfs.Unlinked) {
	for _, x := range list {
		f.inv.Deferred().InvalidateEntry(x.Dir, x.Name)
	}
}

func (v *invalidator) entry(dir vfs.Ino, name string) {
	s := v.kernel()
	node, ok := v.f.node(dir)
	if s == nil || !ok {
		return
	}
	v.report(s.EntryNotify(node, name), "entry", dir)
}

// changed notifies the kernel of another door's change of an inode.
func (v *invalidator) changed(ino vfs.Ino, data bool) {
	v.inode(ino, data)
	if data {
		v.f.sizes.tell(ino)
	}
}

// attrChanged notifies the kernel of attributes that are others than the kernel may think, by
// a request of its own for something else. Of a mode above all: what would run with
// the rights of a file's owner must not for as long as attributes last.
func (v *invalidator) attrChanged(ino vfs.Ino) {
	v.changes.Add(1)
	v.inode(ino, false)
}

func (v *invalidator) inode(ino vfs.Ino, data bool) {
	off, length := int64(-1), int64(0) // attributes only
	if data {
		off, length = 0, -1 // to the end
	}
	v.part(ino, off, length)
}

// part drops attributes, and pages from off on.
func (v *invalidator) part(ino vfs.Ino, off, length int64) {
	s := v.kernel()
	node, ok := v.f.node(ino)
	if s == nil || !ok {
		return
	}
	for {
		st := s.InodeNotify(node, off, length)
		if st != fuse.ENOENT {
			v.report(st, "inode", ino)
			return
		}
		at := v.intro[uint64(ino)%introSlots].Load()
		if at == 0 || time.Since(v.f.started)-time.Duration(at) > introWindow {
			return
		}
		time.Sleep(introRetry)
	}
}

// RecallAttrs drops attributes that are about to change through another gateway, or a door of this
// one. The kernel ignores those in answers to questions for attributes that began before.
func (v *invalidator) RecallAttrs(inodes []vfs.Ino) {
	for _, ino := range inodes {
		v.f.dropAttr(ino)
	}
}

// report logs a notification that failed for another reason than that the
// kernel knows nothing of its subject, or is gone.
func (v *invalidator) report(st fuse.Status, what string, ino vfs.Ino) {
	switch syscall.Errno(st) {
	case 0, syscall.ENOENT, syscall.ENOTDIR, syscall.ENODEV, syscall.ENOTCONN, syscall.EBADF, syscall.EPERM:
	default:
		v.f.opt.Logger.Warn("kernel cache not invalidated", "what", what, "inode", ino, "err", st.String())
	}
}

// later queues a notification.
func (v *invalidator) later(fn func()) {
	select {
	case v.queue <- fn:
		return
	case <-v.done:
		return
	default:
	}
	t := time.NewTimer(deferredWait)
	defer t.Stop()
	select {
	case v.queue <- fn:
	case <-v.done:
	case <-t.C:
		v.f.opt.Logger.Warn("kernel cache not invalidated: too many notifications wait")
	}
}

type deferred struct{ v *invalidator }

func (d deferred) InvalidateEntry(dir vfs.Ino, name string) {
	d.v.changes.Add(1)
	d.v.later(func() { d.v.entry(dir, name) })
}

func (d deferred) InvalidateInode(ino vfs.Ino, data bool) {
	d.v.changes.Add(1)
	d.v.f.privs.moved()
	d.v.later(func() { d.v.changed(ino, data) })
}

// drain waits until what was deferred before is notified; false, if that is not so
// in time.
func (v *invalidator) drain() bool {
	told := make(chan struct{})
	v.later(func() { close(told) })
	late := time.NewTimer(tellWait)
	defer late.Stop()
	select {
	case <-told:
		return true
	case <-v.done:
	case <-late.C:
		v.f.opt.Logger.Warn("another mount learns late of what a mapping changed", "wait", tellWait)
	}
	return false
}

// beside notifies the kernel of the changes of another superblock, whose request waits.
type beside struct{ v *invalidator }

// InvalidateEntry does not wait where names have no cache time.
func (b beside) InvalidateEntry(dir vfs.Ino, name string) {
	b.v.changes.Add(1) // before the look at primary: see rawFS.fillEntry
	if !b.v.f.primary.Load() {
		b.v.later(func() { b.v.entry(dir, name) })
		return
	}
	var late atomic.Bool
	tell := func() {
		b.v.entry(dir, name)
		if late.Load() {
			// What it waited for may be a listing, which the kernel keeps though it began before the change.
			b.v.inode(dir, true)
		}
	}
	if b.v.inTime(tell) {
		return
	}
	late.Store(true)
	err := b.v.f.conn.dropNames()
	b.v.f.opt.Logger.Warn("a name is told late to another mount: all its names are looked up again", "directory", dir, "err", err)
}

func (b beside) InvalidateInode(ino vfs.Ino, data bool) {
	b.v.changes.Add(1)
	b.v.f.privs.moved()
	if !data {
		b.v.inode(ino, false) // takes no lock
		return
	}
	if !b.v.inTime(func() { b.v.changed(ino, true) }) {
		b.v.f.opt.Logger.Warn("content is told late to another mount", "inode", ino, "wait", tellWait)
	}
}

// atOnce is inTime without a goroutine, while there are threads enough.
func (v *invalidator) atOnce(tell func()) bool {
	defer v.untimed.Add(-1)
	if v.untimed.Add(1) > maxUntimed {
		return v.inTime(tell)
	}
	tell()
	return true
}

// inTime reports whether tell ended within tellWait, or the superblock did.
func (v *invalidator) inTime(tell func()) bool {
	told := make(chan struct{})
	go func() {
		defer close(told)
		tell()
	}()
	late := time.NewTimer(tellWait)
	defer late.Stop()
	select {
	case <-told:
		return true
	case <-v.done:
		return true
	case <-late.C:
		return false
	}
}
