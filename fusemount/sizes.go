package fusemount

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"ogw/fusemount/notifier"
	"ogw/vfs"
)

const (
	// openSlots count the open files, by hash of the inode; a collision costs
	// a needless look at a size.
	openSlots = 8192
	// sizeTries bounds how often the kernel is notified of a size: the kernel drops the answer
	// if it changed the file itself concurrently.
	sizeTries = 10
	// sizeWait bounds how long the change of another door waits until the
	// kernel knows the size. It takes microseconds, unless a page that the
	// kernel cuts off is on its way and the engine slow.
	sizeWait = time.Second
)

// sizes makes the kernel learn the size of a file that another door changed
// while programs have it open.
//
// A notification drops attributes, but the kernel goes on with the size that
// it has until somebody asks for one: what a mapping holds behind it is lost,
// and reads up to it show zeros behind the true end. Only stat(2) makes the
// kernel ask us. So one thread calls that, by file handle, without a path.
//
// That thread has a table of descriptors of its own, without /dev/fuse. In a
// process that is killed while a thread waits for its own answer, /dev/fuse
// would stay open as long as the thread waits: for good. For a mount that survives
// the process, it is one of another process (apart).
type sizes struct {
	f     *rawFS
	opens [openSlots]atomic.Int32
	asked chan sizeRequest
	stop  chan struct{}
	once  sync.Once
	ended chan struct{} // the thread is gone, or never was
}

type sizeRequest struct {
	node uint64
	gen  uint32
	size int64 // that the kernel should know
	// answer has room, so that nobody waits for one who gave up.
	answer chan sizeAnswer
}

type sizeAnswer struct {
	known bool // already; else it was notified now
	err   error
}

func (s *sizes) init(f *rawFS) {
	s.f = f
	s.asked = make(chan sizeRequest)
	s.stop, s.ended = make(chan struct{}), make(chan struct{})
}

func (s *sizes) opened(ino vfs.Ino) { s.opens[uint64(ino)%openSlots].Add(1) }
func (s *sizes) closed(ino vfs.Ino) { s.opens[uint64(ino)%openSlots].Add(-1) }

// open reports whether programs have ino open, or another inode of its slot.
func (s *sizes) open(ino vfs.Ino) bool { return s.opens[uint64(ino)%openSlots].Load() > 0 }

// tell returns when the kernel knows the size of ino, if programs have it
// open. A request's handler must not call it: the kernel may hold locks. That of GETATTR
// may: what the kernel may hold then, this needs not. It returns the size; -1: the kernel may know another one.
func (s *sizes) tell(ino vfs.Ino) (size int64) {
	node, ok := s.f.node(ino)
	if !ok || node == fuse.FUSE_ROOT_ID || !s.open(ino) {
		return -1
	}
	told := s.f.pages.telling(ino)
	defer func() { told(size) }()
	late := time.NewTimer(sizeWait)
	defer late.Stop()
	for range sizeTries {
		a, err := s.f.fs.GetAttr(s.f.ctx, ino)
		if err != nil || !a.IsRegular() {
			return -1 // gone
		}
		r := sizeRequest{node, a.Gen, a.Size, make(chan sizeAnswer, 1)}
		select {
		case s.asked <- r:
		case <-s.ended:
			return -1
		case <-late.C:
			return -1
		}
		select {
		case answer := <-r.answer:
			switch {
			case answer.known:
				return a.Size
			case s.failed(ino, answer.err):
				return -1
			}
		case <-late.C:
			return -1
		}
	}
	return -1
}

// failed logs an error that means more than that the kernel has no such inode.
func (s *sizes) failed(ino vfs.Ino, err error) bool {
	if err != nil && !errors.Is(err, unix.ESTALE) {
		s.f.opt.Logger.Debug("the kernel is not told a size", "inode", ino, "err", err)
	}
	return err != nil
}

func (s *sizes) close() { s.once.Do(func() { close(s.stop) }) }

// run serves tell until close: through apart, if another process has such a thread.
func (s *sizes) run(apart func(*notifier.Size) (known bool, err error)) {
	defer close(s.ended)
	if apart != nil {
		s.answer(apart)
		return
	}
	onOwnThread(s.serve)
}

// onOwnThread runs serve on a thread that does nothing else and ends with it. It
// is never the main one: what that has open is what /proc, and with it lsof and
// the metrics, shows as the process's.
func onOwnThread(serve func()) {
	runtime.LockOSThread()
	if unix.Gettid() != os.Getpid() {
		serve()
		return
	}
	defer runtime.UnlockOSThread()
	done := make(chan struct{})
	go func() { // on another thread, since this one is taken
		defer close(done)
		runtime.LockOSThread()
		serve()
	}()
	<-done
}

// serve must do nothing but system calls on descriptors of its own.
func (s *sizes) serve() {
	if err := ownDescriptors(-1); err != nil {
		s.f.opt.Logger.Warn("programs that have a file open see late that another door changed its size", "err", err)
		return
	}
	s.answer((*notifier.Size).Notify)
}

// answer has tell make the kernel ask, until close.
func (s *sizes) answer(tell func(*notifier.Size) (known bool, err error)) {
	for {
		select {
		case r := <-s.asked:
			known, err := tell(&notifier.Size{Node: r.node, Gen: r.gen, Size: r.size, Device: s.f.conn.number(), Dirs: s.f.conn.places()})
			r.answer <- sizeAnswer{known, err}
		case <-s.stop:
			return
		}
	}
}

// ownDescriptors gives the calling thread a working directory of its own, and
// a table of descriptors with those of Go's scheduler alone. The working
// directory is that of the descriptor dir, if it is not negative.
func ownDescriptors(dir int) error {
	scheduler, _, err := listDescriptors()
	if err != nil {
		return err
	}
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	// Most are not even copied.
	if err := unix.CloseRange(uint(max(slices.Max(append(scheduler, -1)), dir)+1), math.MaxUint32, unix.CLOSE_RANGE_UNSHARE); err != nil {
		return fmt.Errorf("close_range: %w", err)
	}
	_, others, err := listDescriptors()
	if err != nil {
		return err
	}
	for _, fd := range others {
		if fd == dir {
			continue
		}
		if err := unix.Close(fd); err != nil {
			return fmt.Errorf("close: %w", err)
		}
	}
	if dir < 0 {
		return nil
	}
	// This may be a call to ourselves already.
	return errors.Join(unix.Fchdir(dir), unix.Close(dir))
}

// listDescriptors returns those of the thread: of Go's scheduler (eventpoll and
// eventfd), and others.
func listDescriptors() (scheduler, others []int, err error) {
	const dir = "/proc/thread-self/fd"
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range list {
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			return nil, nil, err
		}
		to, err := os.Readlink(dir + "/" + e.Name())
		switch {
		case err != nil: // of the listing itself, or closed meanwhile
		case strings.HasPrefix(to, "anon_inode:[event"):
			scheduler = append(scheduler, fd)
		default:
			others = append(others, fd)
		}
	}
	return scheduler, others, nil
}
