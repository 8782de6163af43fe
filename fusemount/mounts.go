package fusemount

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"ogw/fusemount/ledger"
	"ogw/vfs"
)

// Mounts are the mounts of one FS by this process. Those whose options allow
// it share a superblock, so that the kernel has one cache for them.
type Mounts struct {
	fs namespace

	making sync.Mutex // held while a mount is made, so that the next finds its connection

	several atomic.Bool // connections

	mu      sync.Mutex // guards the rest; a leaf
	list    []*connection
	refused []*Refused // superblocks that are not served; few, and some may be gone
	stop    int        // eventfd that ends the watch of the mount table; -1: nobody watches
}

// NewMounts returns an empty set. All mounts of fs should be made by one: those
// of another are notified of changes, but late.
func NewMounts(fs *vfs.FS) *Mounts { return &Mounts{fs: namespaceOf(fs), stop: -1} }

// Mount mounts the namespace on the directory dir and serves it until Unmount,
// or until somebody unmounts it. A dead mount on dir, left by a crash, is
// removed first. It returns ErrNoDevice, ErrNoRights, ErrMountPoint,
// ErrNoRing or ErrBeside, wrapped with what to do about it.
//
// Where there is a mount whose superblock serves opt as well, the new one shows
// the same; its Observe, Done and Logger are then those of the first.
func (m *Mounts) Mount(dir string, opt Options) (*Server, error) {
	if err := m.allows(&opt); err != nil {
		return nil, fmt.Errorf("mount %s: %w", dir, err)
	}
	opt = opt.withDefaults(m.fs.Exclusive())
	dir, err := prepare(dir, opt)
	if err != nil {
		return nil, err
	}
	root, err := m.fs.GetAttr(context.Background(), opt.Root)
	if err != nil {
		return nil, fmt.Errorf("mount %s: root directory: %w", dir, err)
	}
	if !root.IsDir() {
		return nil, fmt.Errorf("mount %s: root: %w", dir, vfs.ErrNotDir)
	}
	m.making.Lock()
	defer m.making.Unlock()
	s, err := m.share(dir, &opt)
	if s != nil || err != nil {
		return s, err
	}
	if opt.Holder != nil && opt.Transport == TransportRing {
		return nil, fmt.Errorf("mount %s: %w: a mount that survives its server takes /dev/fuse, since what lies in a ring is lost with it", dir, ErrNoRing)
	}
	withRing, err := opt.wantsRing()
	if err != nil {
		return nil, fmt.Errorf("mount %s: %w", dir, err)
	}
	s, err = m.mountNew(dir, opt, withRing)
	if errors.Is(err, ErrNoRing) && opt.Transport == TransportAuto && mountedType(dir) != "fuse."+fsType {
		opt.Logger.Warn("requests come through /dev/fuse, which is slower", "dir", dir, "err", err)
		s, err = m.mountNew(dir, opt, false)
	}
	return s, err
}

// allows returns why there can be no mount with opt.
func (m *Mounts) allows(opt *Options) error {
	if m.fs.Exclusive() {
		return nil
	}
	return opt.beside()
}

// share makes a mount of a superblock that is there; nil if there is none for it.
func (m *Mounts) share(dir string, opt *Options) (*Server, error) {
	m.mu.Lock()
	list := slices.Clone(m.list)
	m.mu.Unlock()
	for _, c := range list {
		if !c.shares(opt) {
			continue
		}
		s := c.newServer(dir)
		tree, err := c.another(opt)
		if err == nil {
			s.id, err = attach(m.fs, tree, opt.Root, dir)
			unix.Close(tree)
		}
		switch {
		case err == nil:
			c.add(s)
			c.refresh() // others may be in the tree no more
			return s, nil
		case !errors.Is(err, errNotShared):
			return nil, explain(dir, err)
		default:
			opt.Logger.Debug("a mount gets a superblock of its own", "dir", dir, "err", err)
		}
	}
	return nil, nil
}

// mountNew makes a mount with a connection of its own.
func (m *Mounts) mountNew(dir string, opt Options, withRing bool) (*Server, error) {
	if os.Geteuid() == 0 {
		whole := opt
		whole.Root = vfs.RootIno
		s, err := m.mountDetached(dir, whole, opt.Root, withRing)
		if !errors.Is(err, errNotShared) {
			return s, err
		}
		opt.Logger.Debug("a mount gets a superblock that shows it alone", "dir", dir, "err", err)
	}
	c, err := newConnection(m, opt, withRing, func() (int, error) { return mountDevice(dir, opt) })
	if c == nil {
		return nil, explain(dir, err)
	}
	if err != nil {
		err = errors.Join(err, detach(dir))
		c.awaitEnd()
		return nil, fmt.Errorf("mount %s: %w", dir, err)
	}
	m.adopt(c)
	s := c.newServer(dir)
	var top int
	if top, err = unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err == nil {
		err = c.prepare(top)
		unix.Close(top)
	}
	c.add(s)
	if err != nil { // its device may not be known
		err = errors.Join(err, detach(dir))
		c.awaitEnd()
		return nil, fmt.Errorf("mount %s: %w", dir, err)
	}
	return s, nil
}

// mountDetached makes a superblock of the whole namespace, and puts it into the
// tree, or the directory root of it, when it is ready. It returns errNotShared if
// the kernel lacks what is needed for that.
func (m *Mounts) mountDetached(dir string, opt Options, root vfs.Ino, withRing bool) (*Server, error) {
	tree := -1
	c, err := newConnection(m, opt, withRing, func() (fd int, err error) {
		if fd, err = unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0); err != nil {
			return -1, err
		}
		if tree, err = openSuperblock(fd, &opt); err != nil {
			return -1, errors.Join(errNotShared, err, unix.Close(fd))
		}
		return fd, nil
	})
	if err == nil {
		m.adopt(c)
		err = c.prepare(tree)
	}
	s := c.newServer(dir)
	if err == nil {
		s.id, err = attach(m.fs, tree, root, dir)
	}
	if tree >= 0 {
		unix.Close(tree) // what is in no place ends with it
	}
	if c == nil {
		return nil, explain(dir, err)
	}
	if err != nil {
		c.awaitEnd()
		return nil, explain(dir, err)
	}
	c.add(s)
	c.shareable = true
	c.raw.surv.withBook((*ledger.Ledger).SetShareable)
	if err := m.watch(); err != nil {
		opt.Logger.Warn("the end of a mount that somebody else unmounts is seen late", "err", err)
	}
	return s, nil
}

// adopt takes a connection into the list until it ends.
func (m *Mounts) adopt(c *connection) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list = append(m.list, c)
	m.elect()
	if !c.raw.primary.Load() {
		c.raw.opt.Logger.Info("a mount that cannot share what the kernel keeps with the first: names are looked up each time, what is written leaves no pages, and no file may be mapped for writing through both",
			"io_uring", c.ring != nil)
	}
	go func() {
		<-c.served
		m.mu.Lock()
		defer m.mu.Unlock()
		m.list = slices.DeleteFunc(m.list, func(x *connection) bool { return x == c })
		m.elect()
		if len(m.list) == 0 && m.stop >= 0 {
			_, _ = unix.Write(m.stop, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // cannot fail
			m.stop = -1
		}
	}()
}

// elect makes a connection the primary one, if none is; m.mu is held. It is
// called when the list changed.
func (m *Mounts) elect() {
	m.several.Store(len(m.list) > 1)
	primary := func(c *connection) bool { return c.raw.primary.Load() }
	if len(m.list) > 0 && !slices.ContainsFunc(m.list, primary) {
		m.list[0].setPrimary()
	}
}

func (m *Mounts) empty() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.list) == 0
}

// addRefused has HoldAgain know of a superblock that is not served.
func (m *Mounts) addRefused(r *Refused) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refused = append(m.refused, r)
}

// others returns all connections but one.
func (m *Mounts) others(than *connection) []*connection {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(m.list), func(c *connection) bool { return c == than })
}

// watch looks after the mounts whenever the mount table changes, until m.stop is
// written to. The kernel notifies a process only of the end of superblocks.
func (m *Mounts) watch() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stop >= 0 || len(m.list) == 0 {
		return nil
	}
	table, err := unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	stop, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return errors.Join(err, unix.Close(table))
	}
	m.stop = stop
	go func() {
		defer unix.Close(stop)
		defer unix.Close(table)
		list := []unix.PollFd{{Fd: int32(table), Events: unix.POLLPRI}, {Fd: int32(stop), Events: unix.POLLIN}}
		for {
			_, err := unix.Poll(list, -1)
			if err != nil && !errors.Is(err, unix.EINTR) || list[1].Revents != 0 {
				return
			}
			m.mu.Lock()
			connections := slices.Clone(m.list)
			m.mu.Unlock()
			for _, c := range connections {
				c.refresh()
				c.lookAtFlags()
			}
		}
	}()
	return nil
}
