package fusemount

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"ogw/fusemount/internal/fuseabi"
	"ogw/fusemount/ledger"
	"ogw/vfs"
)

// Left is a superblock that another server left: what it gave to its Holder.
type Left struct {
	Name           string  // that the Holder has for it
	Options        Options // as for Mount; the memory names the root
	Device, Memory int     // /dev/fuse and the ledger, taken over in any case
	// Dirs are the mounts to be listed. Others that show the superblock (bind
	// mounts) are served like them. nil: all.
	Dirs []string
	// Err, if set, is why it must not be served.
	Err error
}

// Taken is what became of one.
type Taken struct {
	Servers []*Server
	Refused *Refused // it is not served
}

// taking is a superblock on its way.
type taking struct {
	*connection
	left    *Left
	book    *ledger.Ledger // nil: it cannot be read
	orphans []vfs.Ino      // that are held
	changed map[vfs.Ino]struct{}
	mounts  []*Server
	killed  bool
	// unopened are files that programs have open, by handle, and that cannot be opened now.
	unopened map[uint64]vfs.Ino
	err      error
}

// TakeOver goes on with the superblocks that another server left. That server
// must be gone: the caller has the lock of its store. Nothing must have removed
// orphans from the store (vfs.Config.Restore).
//
// What programs have open and locked, and what they wrote, is taken up of all of
// them before the first is served, since one may show what another wrote. That
// goes for one that cannot be served, too (ErrOtherMount, ledger.ErrFormat): a
// server that can finds it as it was, as does one that meets no error of the store.
//
// An error means that nothing was taken up: the store does not tell what has to be kept
// for their programs, and must not be used before it does.
func (m *Mounts) TakeOver(left []Left) ([]Taken, error) {
	orphans, err := m.orphans(left)
	if err != nil {
		for _, l := range left {
			err = errors.Join(err, unix.Close(l.Device), unix.Close(l.Memory))
		}
		return nil, err
	}
	list := make([]*taking, len(left))
	for i := range left {
		list[i] = m.takeUp(&left[i])
		list[i].holdOrphans(orphans)
	}
	for _, t := range list {
		t.restore()
	}
	replay(m.fs, list)
	for _, t := range list {
		t.decide()
		t.letGo()
	}
	// In this order: none is served before the others are notified of its changes.
	order := slices.Clone(list)
	slices.SortStableFunc(order, func(a, b *taking) int { return a.rank() - b.rank() })
	for _, t := range order {
		if t.err == nil {
			t.join()
		}
	}
	taken := make([]Taken, len(list))
	for i, t := range list {
		if t.err != nil {
			taken[i].Refused = t.refuse()
			continue
		}
		taken[i].Servers = t.serve()
	}
	return taken, nil
}

// takeUp looks at what was left.
func (m *Mounts) takeUp(l *Left) *taking {
	opt := l.Options.withDefaults(m.fs.Exclusive())
	t := &taking{left: l, err: errors.Join(l.Err, m.allows(&l.Options)), changed: make(map[vfs.Ino]struct{})}
	book, err := ledger.Open(l.Memory)
	if err != nil {
		t.err = errors.Join(t.err, err)
	} else {
		t.book, t.killed = book, !book.Clean()
		opt.Root = vfs.Ino(book.Root())
		book.SetClean(false)
	}
	c := &connection{set: m, raw: newRawFS(context.Background(), m.fs, opt), served: make(chan struct{}), fd: -1}
	c.raw.conn = c
	t.connection = c
	if t.book != nil {
		c.device, c.shareable = t.book.Device(), t.book.Shareable()
	}
	c.loop, err = newLoop(c.raw, l.Device, observe(c.raw), mountOptions(opt, m.fs.Exclusive()))
	t.err = errors.Join(t.err, err)
	return t
}

// rank puts the superblock first whose names the kernel keeps.
func (t *taking) rank() int {
	if t.book != nil && t.book.Primary() {
		return 0
	}
	return 1
}

// orphans returns what has lost its last name and was in use.
func (m *Mounts) orphans(left []Left) (list []vfs.Ino, err error) {
	if len(left) == 0 {
		return nil, nil
	}
	err = m.fs.Orphans(context.Background(), func(ino vfs.Ino) error {
		list = append(list, ino)
		return nil
	})
	if stays(err) {
		left[0].Options.withDefaults(m.fs.Exclusive()).Logger.Error("what was removed while programs had it is lost to them", "err", err)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("files without names that programs may have open: %w", err)
	}
	return list, nil
}

// holdOrphans holds what has lost its last name: any of the kernel's superblocks
// may know it. If one does, FORGET takes that back, whatever the count.
func (t *taking) holdOrphans(list []vfs.Ino) {
	for _, ino := range list {
		t.raw.holds.RestoreOrphan(ino, 1)
	}
	t.orphans = list
}

// decide finds out whether the superblock can be served.
func (t *taking) decide() {
	if t.err == nil {
		t.err = t.loop.agree(t.book)
	}
	if t.err == nil {
		t.fd, t.err = unix.FcntlInt(uintptr(t.loop.fd), unix.F_DUPFD_CLOEXEC, 0)
	}
}

// letGo ends the holds of orphans that the kernel does not know: it cannot come
// to know them again, but by an answer that it has not got. An inode that it is
// about to forget may wait for requests: then what is left to do is done when they
// are answered.
func (t *taking) letGo() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		t.letUnknownGo()
	}()
	late := time.NewTimer(letGoWait)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
	}
}

// letGoWait bounds how long letGo keeps programs waiting.
const letGoWait = time.Second

func (t *taking) letUnknownGo() {
	if t.loop == nil {
		return
	}
	for _, ino := range t.orphans {
		if node, ok := t.raw.node(ino); ok && t.loop.apart.InodeNotify(node, -1, 0) == fuse.ENOENT {
			t.raw.holds.Release(ino, 1)
		}
	}
}

// join makes the superblock one of the set.
func (t *taking) join() {
	c := t.connection
	c.raw.primary.Store(c.set.empty())
	t.book.SetPrimary(c.raw.primary.Load())
	if t.killed {
		c.raw.pages.distrust()
	}
	// Of the server before, the kernel keeps attributes for a moment.
	c.raw.files.each(func(_ uint64, h *fileHandle) { c.raw.dropAttr(h.ino) })
	c.raw.dirs.each(func(_ uint64, d *dirHandle) { c.raw.dropAttr(d.ino) })
	for _, p := range mountsOf(c.device) {
		if t.left.Dirs != nil && !slices.Contains(t.left.Dirs, p.path) {
			c.unlisted = append(c.unlisted, p.path)
			continue
		}
		s := c.newServer(p.path)
		s.id = p.id
		c.add(s)
		t.mounts = append(t.mounts, s)
	}
	c.cancel = c.set.fs.Watch(&c.raw.inv)
	go c.raw.inv.run()
	go c.raw.sizes.run(c.apart())
	c.raw.inv.server.Store(notifierBox{&c.loop.apart})
	c.set.adopt(c)
}

// serve goes on where the server before ended, and returns the mounts.
func (t *taking) serve() []*Server {
	c := t.connection
	_, out := t.book.Init()
	c.loop.write(out, 0, fuseabi.OpInit) // in case the kernel still waits for it
	if st := c.loop.notify(notifyResend, nil); !st.Ok() && t.killed {
		c.raw.opt.Logger.Warn("requests that the server before had read are not sent again: their callers hang until the mount is aborted; Linux 6.9 can", "err", st.String())
	}
	c.loop.start()
	go c.serve()
	go t.tellAgain()
	if err := c.set.watch(); err != nil {
		c.raw.opt.Logger.Warn("the end of a mount that somebody else unmounts is seen late", "err", err)
	}
	return t.mounts
}

// tellAgain has names looked up again, so that it is known which inodes the
// kernel has. If the server before was killed, the kernel may not have been notified
// of what other doors had changed then.
//
// The kernel takes away what is mounted on a directory whose name it is to look
// up again. So where there is such a mount, names last as long as they do
// otherwise: what was changed and not notified was not acknowledged.
func (t *taking) tellAgain() {
	f := t.raw
	if hasMountsInside(t.device) {
		f.opt.Logger.Debug("names are not looked up again, for the sake of mounts inside", "device", t.device)
	} else if err := t.dropNames(); err != nil {
		f.opt.Logger.Debug("names that other doors changed at the end of the server before may be old for as long as names last", "err", err)
	}
	t.changed[f.opt.Root] = struct{}{} // of which no name is looked up
	f.dirs.each(func(_ uint64, d *dirHandle) { t.changed[d.ino] = struct{}{} })
	if t.killed {
		f.files.each(func(_ uint64, h *fileHandle) { t.changed[h.ino] = struct{}{} })
	}
	for ino := range t.changed {
		f.inv.changed(ino, true)
	}
}

// refuse keeps the superblock until it ends.
func (t *taking) refuse() *Refused {
	l, opt := t.left, &t.raw.opt
	r := &Refused{Err: t.err, device: -1, stop: -1, abandon: l.Options.Abandon, log: opt.Logger, release: t.abort}
	r.give = func() error { return opt.Holder.Hold(l.Name, l.Device, l.Memory) }
	if t.loop != nil { // else no descriptors are left
		r.device, r.stop = t.loop.fd, t.loop.stop
	}
	for _, p := range mountsOf(t.device) {
		r.Dirs = append(r.Dirs, p.path)
	}
	t.set.addRefused(r)
	r.start()
	return r
}

// abort ends what was refused.
func (t *taking) abort() {
	t.raw.opt.Holder.Drop(t.left.Name)
	t.raw.OnUnmount()
	t.raw.holds.Close()
	t.loop.close()
	if t.raw.surv != nil {
		t.raw.surv.end()
	}
}
