package fusemount

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"ogw/fusemount/internal/fuseabi"
	"ogw/fusemount/internal/ring"
	"ogw/fusemount/notifier"
)

// connection is one connection to the kernel, with the superblock behind it:
// one cache of names, attributes and pages, and any number of mounts that show
// it. It lasts as long as the kernel has one of those, in whatever mount
// namespace, attached or not.
type connection struct {
	set    *Mounts
	raw    *rawFS
	server *fuse.Server // answered the first request; nil: the superblock survives
	ring   *ring.Ring   // nil: requests come through /dev/fuse
	loop   *loop        // nil: through io_uring
	cancel func()       // ends the watch of the VFS
	served chan struct{}
	// fd is a /dev/fuse, from which further mounts of the superblock are made, if
	// it is shareable.
	fd        int
	shareable bool        // guarded by Mounts.making
	device    string      // major:minor of the superblock; set before list has one
	prepared  atomic.Bool // device is set
	// unlisted are places that showed the superblock at its take-over besides
	// the mounts (bind mounts). Fixed from then on.
	unlisted []string

	mu    sync.Mutex // guards the rest; a leaf: no call on a mount is made under it
	list  []*Server  // its mounts
	ended bool       // fd is closed
}

// newConnection makes a connection and serves it. open makes its superblock,
// and returns its /dev/fuse. If connection and error are returned, the kernel and
// we do not agree: the connection ends with the mount that open made.
func newConnection(set *Mounts, opt Options, withRing bool, open func() (fd int, err error)) (_ *connection, err error) {
	fs := set.fs
	c := &connection{set: set, raw: newRawFS(context.Background(), fs, opt), served: make(chan struct{})}
	c.raw.conn = c
	c.raw.primary.Store(set.empty())
	api, options := observe(c.raw), mountOptions(opt, fs.Exclusive())
	holds := c.raw.holds
	// Other doors may remove the root.
	if err := holds.Hold(c.raw.ctx, opt.Root, 1, holds.Mark()); err != nil {
		holds.Close()
		return nil, err
	}
	if withRing {
		if c.ring, err = c.newRing(); err != nil {
			holds.Close()
			return nil, err
		}
		options.ExtraCapabilities |= fuse.CAP_OVER_IO_URING
	}
	fd, err := open()
	if err == nil {
		if c.fd, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0); err != nil {
			err = errors.Join(err, unix.Close(fd))
		}
	}
	if err != nil {
		c.dropRing()
		holds.Close()
		return nil, err
	}
	c.cancel = fs.Watch(&c.raw.inv)
	go c.raw.inv.run()
	if opt.Holder != nil {
		err = c.connectSurviving(fd, api, options)
	} else {
		err = c.connect(fd, api, options)
	}
	go c.raw.sizes.run(c.apart())
	go c.serve()
	return c, err
}

// connect answers the kernel's first request, and agrees with it on the transport.
// It takes fd over.
func (c *connection) connect(fd int, api fuse.RawFileSystem, options *fuse.MountOptions) (err error) {
	// go-fuse closes fd when it is done.
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		c.dropRing()
		return errors.Join(err, unix.Close(fd))
	}
	if c.server, err = fuse.NewServer(api, fmt.Sprintf("/dev/fd/%d", fd), options); err != nil {
		c.dropRing()
		return errors.Join(err, unix.Close(own))
	}
	init := c.server.KernelSettings()
	c.raw.agreed(init.Flags64())
	if c.ring != nil && init.Flags64()&fuse.CAP_OVER_IO_URING == 0 {
		// Turned off meanwhile.
		c.dropRing()
		if c.raw.opt.Transport == TransportRing {
			unix.Close(own)
			return fmt.Errorf("%w: the kernel does not offer it to this mount", ErrNoRing)
		}
	}
	if c.ring != nil {
		return c.ring.Start(own, *init, api, options)
	}
	if c.loop, err = newLoop(c.raw, own, api, options); err != nil {
		return errors.Join(err, unix.Close(own))
	}
	if err = fuseabi.Agree(c.loop.proto, init); err == nil {
		c.loop.start()
	}
	return err
}

func (c *connection) dropRing() {
	if c.ring != nil {
		c.ring.Discard()
		c.ring = nil
	}
}

// serve answers requests until the connection is gone; if none came about, it
// only cleans up.
func (c *connection) serve() {
	if c.ring != nil {
		c.ring.Serve()
	}
	if c.loop != nil && !c.loop.wait() {
		return // left to the next server
	}
	if c.loop != nil {
		c.loop.close()
	}
	if c.server != nil {
		c.server.Serve() // ends at once: the connection is gone
	} else {
		c.endSurviving()
	}
	c.cancel()
	c.raw.inv.close()
	c.raw.sizes.close()
	c.raw.listings.close()
	c.raw.holds.Close()
	c.mu.Lock()
	c.ended = true
	unix.Close(c.fd)
	list := c.list
	c.list = nil
	c.mu.Unlock()
	close(c.served)
	for _, s := range list {
		close(s.gone)
	}
}

// prepare does what belongs to a superblock whose root a descriptor shows.
func (c *connection) prepare(root int) error {
	c.device = notifier.Device(root)
	c.prepared.Store(true)
	c.raw.surv.setDevice(c.device)
	if err := setReadAhead(c.device); err != nil {
		c.raw.opt.Logger.Warn("read-ahead stays at the kernel's default: sequential reads are slower", "device", c.device, "err", err)
	}
	return noPoll(root)
}

func (c *connection) newServer(dir string) *Server {
	return &Server{dir: dir, conn: c, gone: make(chan struct{})}
}

// another makes one more mount of the superblock, in no place yet. It returns
// errNotShared if the connection is gone, or the kernel does not know how.
func (c *connection) another(opt *Options) (tree int, err error) {
	c.mu.Lock()
	fd := -1
	if err = errNotShared; !c.ended {
		fd, err = unix.FcntlInt(uintptr(c.fd), unix.F_DUPFD_CLOEXEC, 0)
	}
	c.mu.Unlock()
	if err != nil {
		return -1, err
	}
	defer unix.Close(fd)
	if tree, err = openSuperblock(fd, opt); err != nil {
		return -1, fmt.Errorf("%w: %w", errNotShared, err)
	}
	return tree, nil
}

// add takes s, which is in the tree, into the list.
func (c *connection) add(s *Server) {
	defer c.lookAtFlags()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		close(s.gone)
		return
	}
	c.list = append(c.list, s)
}

// lookAtFlags finds out whether reads move access times: that is a flag of each
// mount, and a request does not show through which it came. So they do unless all
// mounts of the superblock are noatime or read-only, whoever made them; nodiratime
// counts for directories.
func (c *connection) lookAtFlags() {
	all, dirs, some := true, true, false
	for entry := range mountEntries() {
		if entry[2] != c.device {
			continue
		}
		flags := strings.Split(entry[5], ",")
		quiet := slices.Contains(flags, "noatime") || slices.Contains(flags, "ro")
		some, all, dirs = true, all && quiet, dirs && (quiet || slices.Contains(flags, "nodiratime"))
	}
	c.raw.quiet.Store(some && all)
	c.raw.quietDirs.Store(some && dirs)
}

// awaitEnd waits for the end of the connection, behind that of its mounts.
func (c *connection) awaitEnd() bool { return awaitEnd(c.served) }

// notifyIncEpoch is FUSE_NOTIFY_INC_EPOCH (Linux 6.16), which go-fuse does not
// send.
const notifyIncEpoch = 8

// dropNames makes the kernel look all names of the superblock up again. It takes
// no lock.
func (c *connection) dropNames() error {
	if st := c.notify(notifyIncEpoch, nil); !st.Ok() && st != fuse.ENODEV { // else there are none
		return syscall.Errno(st)
	}
	return nil
}

// dropAttr makes the kernel ask for the attributes of a node again. It takes no lock.
func (c *connection) dropAttr(node uint64) fuse.Status {
	return c.notify(notifyInvalInode, invalInode(node, -1, 0))
}

// notify sends the kernel a message that waits for nothing.
func (c *connection) notify(code int32, body []byte) fuse.Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return fuse.ENODEV
	}
	if _, err := unix.Write(c.fd, notification(code, body)); err != nil {
		return fuse.ToStatus(err)
	}
	return fuse.OK
}

// refresh takes those mounts from the list that are in the tree no more, if
// another still is. Else they stand for the connection until it ends: programs
// or other mount namespaces still have it.
func (c *connection) refresh() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.list) < 2 {
		return
	}
	away := func(s *Server) bool { return !inTree(s.id) }
	if !slices.ContainsFunc(c.list, func(s *Server) bool { return !away(s) }) {
		return
	}
	c.list = slices.DeleteFunc(c.list, func(s *Server) bool {
		if !away(s) {
			return false
		}
		close(s.gone)
		return true
	})
}

// dirs returns where the mounts are.
func (c *connection) dirs() (list []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.list {
		list = append(list, s.dir)
	}
	return list
}

// enter makes a mount of the superblock the working directory of the thread,
// which has one of its own.
func (c *connection) enter() error { return notifier.Enter(c.device, c.places()) }

// places are where the superblock is mounted, as far as is known.
func (c *connection) places() (list [][]byte) {
	for _, dir := range append(c.dirs(), c.unlisted...) {
		list = append(list, []byte(dir))
	}
	return list
}

// shares reports whether the superblock serves a mount with opt as well. What
// the kernel keeps for each mount does not matter: read-only, nosuid, nodev,
// noexec, noatime, nodiratime, nosymfollow, the source's name, and which directory is
// shown.
func (c *connection) shares(opt *Options) bool {
	own := &c.raw.opt
	transport := TransportDevice
	if c.ring != nil {
		transport = TransportRing
	}
	return c.shareable && (own.Holder == nil) == (opt.Holder == nil) && own.Abandon == opt.Abandon && own.AllowOther == opt.AllowOther && own.Writeback == opt.Writeback && own.FlushBehind == opt.FlushBehind && own.NoHandles == opt.NoHandles &&
		own.EntryTimeout == opt.EntryTimeout && own.AttrTimeout == opt.AttrTimeout && own.Debug == opt.Debug &&
		own.sync() == opt.sync() && (opt.Transport == TransportAuto || opt.Transport == transport)
}
