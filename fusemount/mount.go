package fusemount

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ogw/vfs"
)

// Errors of Mount.
var (
	ErrNoDevice   = errors.New("FUSE is not available")
	ErrNoRights   = errors.New("no right to mount")
	ErrMountPoint = errors.New("bad mount point")
)

// Errors of Unmount and Detach: what is at the place of the mount is another's.
var (
	// ErrAway: somebody else took the mount out of the tree, and programs still use it.
	ErrAway = errors.New("the mount is out of the tree, and programs use it")
	// ErrCovered: the mount is in the tree, and not what is seen at its place.
	ErrCovered = fmt.Errorf("%w: something else is mounted over it, or it was moved", unix.EBUSY)
)

// Server is one mount. Several may show one superblock (see connection).
type Server struct {
	dir  string
	id   uint64 // of the mount, unique until the machine starts anew; 0: not known
	conn *connection
	gone chan struct{}
}

// Mount mounts fs on the directory dir, for a process that has no other mount
// of fs: see Mounts.Mount.
func Mount(fs *vfs.FS, dir string, opt Options) (*Server, error) {
	return NewMounts(fs).Mount(dir, opt)
}

// Ring reports whether requests come through io_uring.
func (s *Server) Ring() bool { return s.conn.ring != nil }

// Dir returns the absolute path of the mount point.
func (s *Server) Dir() string { return s.dir }

// LockClient returns the name under which the locks of the mount's programs
// stand in lock.Owner.Client. Mounts that share a superblock have one name.
func (s *Server) LockClient() string { return s.conn.raw.client }

// Wait returns when the mount is gone: out of the tree, and if no other shows
// its superblock, when the last program and mount namespace let go of it.
func (s *Server) Wait() { <-s.gone }

// unmountWait bounds how long Unmount waits for the kernel to end the
// connection of a mount that is out of the tree. It takes milliseconds, but
// another mount namespace (a container, a service with mounts of its own) may
// have a copy of the mount, and the connection lasts as long as that.
const unmountWait = 10 * time.Second

// Unmount removes the mount. It fails with EBUSY while programs use it, ErrCovered and
// ErrAway. Copies in other mount namespaces stay, and are served on.
func (s *Server) Unmount() error {
	if s.Ended() {
		return nil
	}
	err := s.onTop()
	if err == nil {
		err = unmountDevice(s.dir)
	}
	s.conn.refresh()
	if err != nil && s.Ended() { // meanwhile, by somebody else
		return nil
	}
	if err != nil {
		return fmt.Errorf("unmount %s: %w", s.dir, err)
	}
	if !awaitEnd(s.gone) {
		s.conn.raw.opt.Logger.Warn("unmounted here, but another mount namespace still has the mount", "dir", s.dir)
	}
	return nil
}

// Ended reports whether Wait returns at once.
func (s *Server) Ended() bool {
	select {
	case <-s.gone:
		return true
	default:
		return false
	}
}

// onTop returns why a call that unmounts what is at the place of the mount would end something
// else: ErrAway or ErrCovered. A place that is free may be used by anybody.
func (s *Server) onTop() error {
	top := mountEntry(s.dir)
	if top != nil && top[2] == s.conn.device && s.isAt(mountPlace{s.dir, uniqueID(mountIDs(), top)}) {
		return nil
	}
	if slices.ContainsFunc(mountsOf(s.conn.device), s.isAt) {
		return ErrCovered
	}
	return ErrAway
}

// isAt reports whether p, of the superblock, is the mount: by its path where an ID is not known,
// which a sandbox may keep even from a process that was told its own.
func (s *Server) isAt(p mountPlace) bool {
	if s.id == 0 || p.id == 0 {
		return p.path == s.dir
	}
	return p.id == s.id
}

// awaitEnd waits until gone is closed, but not for ever.
func awaitEnd(gone <-chan struct{}) bool {
	late := time.NewTimer(unmountWait)
	defer late.Stop()
	select {
	case <-gone:
		return true
	case <-late.C:
		return false
	}
}

// Detach takes the mount out of the tree at once; programs that use it go on
// until they close what they have open. It fails with ErrCovered.
func (s *Server) Detach() error {
	err := s.onTop()
	if err == nil {
		err = detach(s.dir)
	} else if errors.Is(err, ErrAway) {
		err = nil
	}
	s.conn.refresh()
	return err
}

// Detach takes the mount of this package at dir out of the tree, whoever serves it. It fails
// with ErrCovered.
func Detach(dir string) error {
	if err := Uncovered(dir); err != nil {
		return err
	}
	return detach(dir)
}

// Uncovered returns ErrCovered if a mount of this package, of whichever process, is at the
// absolute path dir, and something else over it, which the kernel would unmount.
func Uncovered(dir string) error {
	if IsMount(dir) && mountedType(dir) != "fuse."+fsType {
		return ErrCovered
	}
	return nil
}

// CheckMountPoint returns why Mount would refuse the directory dir: an error of
// ErrMountPoint, ErrNoRights or ErrNoDevice. As Mount, it removes a dead mount.
func CheckMountPoint(dir string, opt Options) error {
	_, err := prepare(dir, opt)
	return err
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

// IsDead reports whether a mount whose server is gone stands at dir. A stat
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

// explain adds what a failed mount lacks.
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

// setReadAhead raises the read-ahead of a superblock's backing device, which
// has its name from the superblock's: major:minor.
func setReadAhead(device string) error {
	name := "/sys/class/bdi/" + device + "/read_ahead_kb"
	var err error
	for range 10 { // the entry appears a moment after the mount
		if err = os.WriteFile(name, fmt.Appendf(nil, "%d", readAheadKB), 0); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}
