package fusemount

import (
	"context"
	"math/rand/v2"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"ogw/cluster"
	"ogw/vfs"
)

// rawFS answers the kernel's requests. Its methods run in many goroutines.
type rawFS struct {
	fuse.RawFileSystem // answers ENOSYS to what is not defined here

	fs     namespace
	opt    Options
	ctx    context.Context // relaxed, this mount the origin; what waits has one of its own (request)
	late   context.Context // the same, but other superblocks learn later of changes
	client string          // of its locks
	conn   superblock      // that asks

	// primary reports whether names have a cache time here, and written pages stay: in
	// at most one superblock of all that show the namespace (see doc.go).
	primary atomic.Bool
	// beside reports whether other processes may change the store unseen.
	beside bool
	// direct reports whether the kernel maps files that are opened past its cache.
	direct bool
	// unopened reports whether the kernel lists directories without opening them, once it is
	// told so.
	unopened bool
	// quiet reports whether no mount of the superblock has reads move access times.
	quiet       atomic.Bool
	labels      atomic.Bool   // there are some: see label
	quietDirs   atomic.Bool   // the same of directories
	lateChanges atomic.Uint64 // made through late
	lateTold    atomic.Uint64 // of them, notified

	holds    *vfs.Holder // of what the kernel knows (see doc.go)
	inv      invalidator
	sizes    sizes
	callers  callerWatch
	kills    killWatch
	waits    func(unique uint64) // called for requests that wait; nil: nobody listens
	pauses   func(unique uint64) // the same of those whose kind does not tell, over io_uring
	files    handleTable[*fileHandle]
	cached   pageWrites
	dirs     handleTable[*dirHandle]
	listings listings
	privs    privClock
	pages    pageVersions
	lockers  lockers
	surv     *survival // nil: the mount ends with its server
	started  time.Time
}

// superblock is what requests and notifications ask of the connection that they
// belong to.
type superblock interface {
	number() string   // major:minor
	dirs() []string   // where its mounts are
	places() [][]byte // the same, and where else it shows
	several() bool    // reports whether others show the namespace
	others() []*rawFS // those
	sameSet(superblock) bool
	// dropNames has the kernel look all names up again. It takes no lock.
	dropNames() error
	// dropAttr has the kernel ask for attributes again. It takes no lock.
	dropAttr(node uint64) fuse.Status
}

func newRawFS(ctx context.Context, fs namespace, opt Options) *rawFS {
	f := &rawFS{RawFileSystem: fuse.NewDefaultRawFileSystem(), fs: fs, opt: opt, beside: !fs.Exclusive(), started: time.Now()}
	f.client = lockClient(rand.Uint64())
	f.inv.init(f)
	f.sizes.init(f)
	f.ctx = vfs.WithOrigin(cluster.Relaxed(ctx), &f.inv)
	f.late = vfs.WithLateOrigin(cluster.Relaxed(ctx), &f.inv)
	f.holds = fs.NewHolder()
	if f.beside {
		f.holds.OnUnlinked(f.dropUnlinked)
	}
	f.pages.init(f.beside)
	life := opt.EntryTimeout
	if f.beside {
		life = 0
	}
	f.listings.init(life, func(ino vfs.Ino) { f.inv.inode(ino, true) })
	return f
}

// String names the file system.
func (f *rawFS) String() string { return "ogw" }

// Init is called before the first request is served.
func (f *rawFS) Init(s *fuse.Server) { f.inv.server.Store(notifierBox{s}) }

// OnUnmount is called after the last request.
func (f *rawFS) OnUnmount() {
	f.files.each(func(_ uint64, h *fileHandle) {
		if err := h.file.Close(f.ctx); err != nil {
			f.opt.Logger.Error("closing a file at unmount", "inode", h.ino, "err", err)
		}
	})
	if err := f.fs.StoreClosed(f.ctx); err != nil {
		f.opt.Logger.Error("storing what was closed at unmount", "err", err)
	}
	f.fs.Locks().ReleaseClient(f.client)
	f.fs.Locks().SetJournal(f.client, nil)
}

// ino translates a node ID: node 1 is the mount's root.
func (f *rawFS) ino(node uint64) vfs.Ino {
	if node == fuse.FUSE_ROOT_ID {
		return f.opt.Root
	}
	return vfs.Ino(node)
}

// node translates an inode number. The true root, if it is not the mount's,
// has no node: nothing below the mount's root leads to it.
func (f *rawFS) node(ino vfs.Ino) (node uint64, ok bool) {
	switch ino {
	case f.opt.Root:
		return fuse.FUSE_ROOT_ID, true
	case fuse.FUSE_ROOT_ID:
		return 0, false
	}
	return uint64(ino), true
}

// request returns the context of a request; its end must be called.
func (f *rawFS) request(cancel <-chan struct{}, h *fuse.InHeader) *request {
	return &request{Context: f.ctx, watch: &f.kills, waits: f.waits, interrupted: cancel, tid: h.Pid, unique: h.Unique}
}

// mayWait informs the reader of requests that this one may wait or takes long.
func (f *rawFS) mayWait(h *fuse.InHeader) {
	if f.waits != nil {
		f.waits(h.Unique)
	}
}

// mayNotify is mayWait of a request whose kind does not tell, and that waits for what the kernel
// does about a notification, for which it may need another request.
func (f *rawFS) mayNotify(h *fuse.InHeader) {
	f.mayWait(h)
	if f.pauses != nil {
		f.pauses(h.Unique)
	}
}

func cred(h *fuse.InHeader) *vfs.Cred {
	return vfs.CheckedCred(h.Uid, h.Gid)
}

func credUmask(h *fuse.InHeader, umask uint32) *vfs.Cred {
	c := vfs.CheckedCred(h.Uid, h.Gid)
	c.Umask = umask
	return c
}

// attrBlockSize is st_blksize: programs that buffer by it send requests of a
// useful size.
const attrBlockSize = 64 << 10

func (f *rawFS) fillAttr(a *vfs.Attr, out *fuse.Attr) {
	out.Ino = uint64(a.Ino)
	out.Size = uint64(a.Size)
	out.Blocks = uint64(a.Used+511) / 512
	out.Atime, out.Atimensec = unixTime(a.Atime)
	out.Mtime, out.Mtimensec = unixTime(a.Mtime)
	out.Ctime, out.Ctimensec = unixTime(vfs.TimeNS(a.CtimeNS))
	out.Mode = a.Mode
	out.Nlink = a.Nlink
	out.Uid = a.UID
	out.Gid = a.GID
	out.Rdev = a.Rdev
	out.Blksize = attrBlockSize
}

// unixTime is how the kernel takes a time: it reads the seconds as signed.
func unixTime(t vfs.Time) (sec uint64, nsec uint32) { return uint64(t.Sec), t.Nsec }

// glance is taken before the VFS is asked for attributes that the kernel is then told.
type glance struct {
	since uint64 // changes notified (see invalidator)
	read  vfs.ReadMoment
}

func (f *rawFS) glance() glance { return glance{f.inv.count(), f.fs.ReadMoment()} }

// keeps returns for how long the kernel may keep a, which was read after at and is the answer to a question for
// attributes: beside others it keeps no others. With those the kernel drops ACLs that it has, and it ignores
// them if it was notified meanwhile.
func (f *rawFS) keeps(a *vfs.Attr, at glance) time.Duration {
	if f.opt.AttrTimeout == 0 || f.inv.count() != at.since || !f.pages.shows(a) {
		return 0
	}
	return min(f.opt.AttrTimeout, f.fs.KeepAttr(a, at.read))
}

// answerTime is how long an answer may take by which the kernel keeps something; 0: any time.
func (f *rawFS) answerTime() time.Duration {
	if f.beside {
		return cluster.AnswerTime
	}
	return 0
}

// moment is taken before the VFS is asked for an inode that the kernel is then
// notified of.
type moment struct {
	since uint64 // changes notified (see invalidator)
	mark  vfs.HoldMark
	open  bool // and what was found is open since
}

func (f *rawFS) moment() moment { return moment{since: f.inv.count(), mark: f.holds.Mark()} }

// fillEntry answers with an inode that was found after at, and counts that the
// kernel knows it. ErrStale if it was removed since.
func (f *rawFS) fillEntry(a *vfs.Attr, out *fuse.EntryOut, at moment) error {
	node, ok := f.node(a.Ino)
	switch {
	case ok && at.open:
		f.holds.HoldOpen(a.Ino, 1)
	case ok:
		if err := f.holds.Hold(f.ctx, a.Ino, 1, at.mark); err != nil {
			return err
		}
	}
	out.NodeId = node
	out.Generation = uint64(a.Gen)
	f.fillAttr(a, &out.Attr)
	f.inv.stamp(a.Ino)
	f.pages.told(a)
	keepName := f.primary.Load() // before the count: see beside
	if f.inv.count() == at.since && !f.beside {
		if keepName {
			out.SetEntryTimeout(f.opt.EntryTimeout)
		}
		out.SetAttrTimeout(f.opt.AttrTimeout)
	}
	return nil
}

// stack returns where a panic came from.
func stack() string { return string(debug.Stack()) }
