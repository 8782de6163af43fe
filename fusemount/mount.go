package fusemount

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"ogw/vfs"
)

// Errors of Mount.
var (
	ErrNoDevice   = errors.New("FUSE is not available")
	ErrNoRights   = errors.New("no right to mount")
	ErrMountPoint = errors.New("bad mount point")
)

// Server is one mount.
type Server struct {
	dir    string
	raw    *rawFS
	server *fuse.Server
	ring   *ring  // nil: requests come through /dev/fuse
	cancel func() // ends the watch of the VFS
	served chan struct{}
}

// Mount mounts fs on the directory dir and serves it until Unmount, or until
// somebody unmounts it. A dead mount on dir, left by a crash, is removed
// first. It returns ErrNoDevice, ErrNoRights, ErrMountPoint or ErrNoRing,
// wrapped with what to do about it.
func Mount(fs *vfs.FS, dir string, opt Options) (*Server, error) {
	opt = opt.withDefaults(fs.Exclusive())
	dir, err := prepare(dir, opt)
	if err != nil {
		return nil, err
	}
	root, err := fs.GetAttr(context.Background(), opt.Root)
	if err != nil {
		return nil, fmt.Errorf("mount %s: root directory: %w", dir, err)
	}
	if !root.IsDir() {
		return nil, fmt.Errorf("mount %s: root: %w", dir, vfs.ErrNotDir)
	}
	withRing := opt.Transport != TransportDevice
	if withRing {
		if withRing, err = ringOffered(opt.Transport == TransportRing); err != nil {
			return nil, fmt.Errorf("mount %s: %w", dir, err)
		}
	}
	s, err := mount(fs, dir, opt, withRing)
	if errors.Is(err, ErrNoRing) && opt.Transport == TransportAuto && mountedType(dir) != "fuse."+fsType {
		opt.Logger.Warn("requests come through /dev/fuse, which is slower", "dir", dir, "err", err)
		s, err = mount(fs, dir, opt, false)
	}
	if err != nil {
		return nil, err
	}
	if err := setReadAhead(dir); err != nil {
		opt.Logger.Warn("read-ahead stays at the kernel's default: sequential reads are slower", "dir", dir, "err", err)
	}
	return s, nil
}

// mount mounts and serves dir, which is fit for it.
func mount(fs *vfs.FS, dir string, opt Options, withRing bool) (_ *Server, err error) {
	s := &Server{dir: dir, raw: newRawFS(context.Background(), fs, opt), served: make(chan struct{})}
	s.raw.sizes.dir = dir
	holds := s.raw.holds
	// Other doors may remove the root.
	if err := holds.Hold(s.raw.ctx, opt.Root, 1, holds.Mark()); err != nil {
		holds.Close()
		return nil, fmt.Errorf("mount %s: %w", dir, err)
	}
	api, options := observe(s.raw), mountOptions(opt, fs.Exclusive())
	if withRing {
		if s.ring, err = newRing(s.raw); err != nil {
			holds.Close()
			return nil, fmt.Errorf("mount %s: %w", dir, err)
		}
		options.ExtraCapabilities |= fuse.CAP_OVER_IO_URING
	}
	fd, err := mountDevice(dir, opt)
	if err != nil {
		s.dropRing()
		holds.Close()
		return nil, explain(dir, err)
	}
	s.cancel = fs.Watch(&s.raw.inv)
	go s.raw.inv.run()
	go s.raw.sizes.run()
	err = s.connect(fd, api, options)
	go s.serve()
	if err != nil {
		err = errors.Join(err, detach(dir))
		s.awaitEnd()
		return nil, fmt.Errorf("mount %s: %w", dir, err)
	}
	if err := noPoll(dir); err != nil {
		return nil, fmt.Errorf("mount %s: %w", dir, errors.Join(err, s.Unmount()))
	}
	return s, nil
}

// connect answers the kernel's first request, and agrees with it on the transport.
// It takes fd over.
func (s *Server) connect(fd int, api fuse.RawFileSystem, options *fuse.MountOptions) (err error) {
	own := -1
	if s.ring != nil {
		// go-fuse closes fd when it is done.
		if own, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0); err != nil {
			s.dropRing()
			return errors.Join(err, unix.Close(fd))
		}
	}
	if s.server, err = fuse.NewServer(api, fmt.Sprintf("/dev/fd/%d", fd), options); err != nil {
		s.dropRing()
		if own >= 0 {
			err = errors.Join(err, unix.Close(own))
		}
		return err
	}
	if s.ring == nil {
		return nil
	}
	init := s.server.KernelSettings()
	if init.Flags64()&fuse.CAP_OVER_IO_URING == 0 {
		// Turned off meanwhile.
		s.dropRing()
		unix.Close(own)
		if s.raw.opt.Transport == TransportRing {
			return fmt.Errorf("%w: the kernel does not offer it to this mount", ErrNoRing)
		}
		return nil
	}
	return s.ring.start(own, *init, api, options)
}

func (s *Server) dropRing() {
	if s.ring != nil {
		s.ring.drop()
		s.ring = nil
	}
}

// pollName is a name that go-fuse answers for itself.
const pollName = ".go-fuse-epoll-hack"

// noPoll lets the kernel learn that files take no part in poll(2), as regular
// files do not. Else it asks when a Go program opens its first file here; if that
// is this one, its scheduler waits for the answer that it should give.
//
// That is a call to ourselves, so the thread has no /dev/fuse (see sizes).
func noPoll(dir string) error {
	result := make(chan error, 1)
	go onOwnThread(func() {
		if err := ownDescriptors(); err != nil {
			result <- err
			return
		}
		fd, err := unix.Open(filepath.Join(dir, pollName), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			_, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN | unix.POLLPRI | unix.POLLOUT}}, 0)
			err = errors.Join(err, unix.Close(fd))
		}
		result <- err
	})
	return <-result
}

// Ring tells whether requests come through io_uring.
func (s *Server) Ring() bool { return s.ring != nil }

// Dir returns the absolute path of the mount point.
func (s *Server) Dir() string { return s.dir }

// LockClient returns the name under which the locks of the mount's programs
// stand in lock.Owner.Client.
func (s *Server) LockClient() string { return s.raw.client }

// Wait returns when the mount is gone.
func (s *Server) Wait() { <-s.served }

// unmountWait bounds how long Unmount waits for the kernel to end the
// connection of a mount that is out of the tree. It takes milliseconds, but
// another mount namespace (a container, a service with mounts of its own) may
// have a copy of the mount, and the connection lasts as long as that.
const unmountWait = 10 * time.Second

// Unmount removes the mount. It fails with EBUSY while programs use it. Copies
// in other mount namespaces stay, and are served on.
func (s *Server) Unmount() error {
	select {
	case <-s.served:
		return nil
	default:
	}
	if err := unmountDevice(s.dir); err != nil {
		return fmt.Errorf("unmount %s: %w", s.dir, err)
	}
	if !s.awaitEnd() {
		s.raw.opt.Logger.Warn("unmounted here, but another mount namespace still has the mount", "dir", s.dir)
	}
	return nil
}

// awaitEnd waits for the end of the connection, behind that of the mount.
func (s *Server) awaitEnd() bool {
	late := time.NewTimer(unmountWait)
	defer late.Stop()
	select {
	case <-s.served:
		return true
	case <-late.C:
		return false
	}
}

// Detach takes the mount out of the tree at once; programs that use it go on
// until they close what they have open.
func (s *Server) Detach() error { return detach(s.dir) }

// serve answers requests until the connection is gone; if none came about, it
// only cleans up.
func (s *Server) serve() {
	defer close(s.served)
	if s.ring != nil {
		s.ring.serve()
		unix.Close(s.ring.fd)
	}
	if s.server != nil {
		s.server.Serve() // behind the ring it ends at once
	}
	s.cancel()
	s.raw.inv.close()
	s.raw.sizes.close()
	s.raw.holds.Close()
}

// prepare checks the mount point and removes a dead mount from it.
func prepare(dir string, opt Options) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(abs)
	if IsDead(abs) {
		opt.Logger.Warn("removing a dead mount", "dir", abs)
		if err := detach(abs); err != nil {
			return "", fmt.Errorf("%w: %s holds a dead mount that cannot be removed: %w", ErrMountPoint, abs, err)
		}
		info, err = os.Stat(abs)
	}
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("%w: %s does not exist; make it with mkdir", ErrMountPoint, abs)
	case err != nil:
		return "", fmt.Errorf("%w: %w", ErrMountPoint, err)
	case !info.IsDir():
		return "", fmt.Errorf("%w: %s is not a directory", ErrMountPoint, abs)
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real
	}
	if t := mountedType(abs); t == "fuse."+fsType {
		return "", fmt.Errorf("%w: %s is mounted already; umount it first", ErrMountPoint, abs)
	}
	if !opt.NonEmpty {
		if empty, err := isEmpty(abs); err != nil {
			return "", fmt.Errorf("%w: %w", ErrMountPoint, err)
		} else if !empty {
			return "", fmt.Errorf("%w: %s is not empty; its entries would be hidden (option nonempty mounts all the same)", ErrMountPoint, abs)
		}
	}
	return abs, checkDevice()
}

// IsDead tells whether a mount whose server is gone stands at dir. A stat
// would not notice while the kernel has the attributes of the root.
func IsDead(dir string) bool {
	var st unix.Statfs_t
	err := unix.Statfs(dir, &st)
	return errors.Is(err, unix.ENOTCONN) || errors.Is(err, unix.ECONNABORTED)
}

func isEmpty(dir string) (bool, error) {
	d, err := os.Open(dir)
	if err != nil {
		return false, err
	}
	defer d.Close()
	_, err = d.Readdirnames(1)
	if errors.Is(err, io.EOF) {
		return true, nil
	}
	return false, err
}

func checkDevice() error {
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	switch {
	case err == nil:
		return unix.Close(fd)
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return fmt.Errorf("%w: /dev/fuse: %w; in a container, start it with --device /dev/fuse --cap-add SYS_ADMIN", ErrNoRights, err)
	}
	return fmt.Errorf("%w: /dev/fuse: %w; load the kernel module (modprobe fuse), or start the container with --device /dev/fuse", ErrNoDevice, err)
}

// explain says what a failed mount lacks.
func explain(dir string, err error) error {
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("mount %s: %w: mounting without root needs fusermount3 (package fuse3): %w", dir, ErrNoRights, err)
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EACCES):
		return fmt.Errorf("mount %s: %w: %w; mounting needs CAP_SYS_ADMIN, or fusermount3 and write permission on the directory", dir, ErrNoRights, err)
	case errors.Is(err, errHelper):
		return fmt.Errorf("mount %s: %w: %w", dir, ErrNoRights, err)
	}
	return fmt.Errorf("mount %s: %w", dir, err)
}

// fsType is the subtype: the mount table shows fuse.ogw.
const fsType = "ogw"

func mountOptions(opt Options, exclusive bool) *fuse.MountOptions {
	m := &fuse.MountOptions{
		Name:     fsType,
		Options:  []string{"default_permissions"},
		MaxWrite: maxRequestBytes,
		// Read-ahead is set through sysfs after mounting: the kernel takes at
		// most 128 KiB here.
		MaxBackground:        maxBackground,
		EnableLocks:          true,
		EnableAcl:            true,
		EnableSymlinkCaching: true,
		// Pages are dropped when we say so, not when a time stamp moved:
		// every own write moves it.
		ExplicitDataCacheControl: exclusive,
		DisableSplice:            true, // replies come from memory
		Debug:                    opt.Debug,
		Logger:                   slog.NewLogLogger(opt.Logger.Handler(), slog.LevelDebug),
		// Not CAP_ASYNC_DIO: the kernel drops the pages under an asynchronous
		// direct write before it is done, and a reader beside it then keeps the
		// old ones.
		ExtraCapabilities: fuse.CAP_ATOMIC_O_TRUNC | fuse.CAP_DONT_MASK |
			fuse.CAP_HANDLE_KILLPRIV_V2 | fuse.CAP_SETXATTR_EXT | fuse.CAP_READDIRPLUS_AUTO |
			fuse.CAP_DIRECT_IO_ALLOW_MMAP,
		PanicHandler: func(v any) fuse.Status {
			opt.Logger.Error("panic in a fuse request", "panic", v, "stack", stack())
			return fuse.EIO
		},
	}
	if opt.Root == vfs.RootIno {
		// A handle says nothing of the way to its file: elsewhere it would
		// lead out of the mount.
		m.ExtraCapabilities |= fuse.CAP_EXPORT_SUPPORT
	}
	if opt.Writeback {
		m.ExtraCapabilities |= fuse.CAP_WRITEBACK_CACHE
	}
	return m
}

// mountedType returns the type of the file system mounted on dir, if any.
func mountedType(dir string) string {
	fields := mountEntry(dir)
	if i := slices.Index(fields, "-"); i > 0 && i+1 < len(fields) {
		return fields[i+1]
	}
	return ""
}

// mountEntry returns the line of the mount table for what is mounted on dir:
//
//	ID parent major:minor root MOUNTPOINT options... - TYPE source ...
func mountEntry(dir string) (found []string) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	for line := range strings.SplitSeq(string(table), "\n") {
		if fields := strings.Fields(line); len(fields) >= 7 && unescapeMount(fields[4]) == dir {
			found = fields // the last one is on top
		}
	}
	return found
}

// unescapeMount undoes the octal escapes of the mount table.
func unescapeMount(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// setReadAhead raises the read-ahead of the mount's backing device. It does
// not ask stat for that: who waits for an answer of his own when he is killed
// stays for good, with /dev/fuse open.
func setReadAhead(dir string) error {
	mount := mountEntry(dir)
	if mount == nil {
		return fmt.Errorf("%s: %w in the mount table", dir, os.ErrNotExist)
	}
	name := "/sys/class/bdi/" + mount[2] + "/read_ahead_kb"
	var err error
	for range 10 { // the entry appears a moment after the mount
		if err = os.WriteFile(name, fmt.Appendf(nil, "%d", readAheadKB), 0); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}
