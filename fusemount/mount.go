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
	"sync"
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
	cancel func() // ends the watch of the VFS
	served chan struct{}
	end    sync.Once
}

// Mount mounts fs on the directory dir and serves it until Unmount, or until
// somebody unmounts it. A dead mount on dir, left by a crash, is removed
// first. It returns ErrNoDevice, ErrNoRights or ErrMountPoint, wrapped with
// what to do about it.
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
	raw := newRawFS(context.Background(), fs, opt)
	raw.sizes.dir = dir
	cancel := fs.Watch(&raw.inv)
	server, err := fuse.NewServer(observe(raw, opt), dir, mountOptions(opt, fs.Exclusive()))
	if err != nil {
		cancel()
		return nil, explain(dir, opt, err)
	}
	s := &Server{dir: dir, raw: raw, server: server, cancel: cancel, served: make(chan struct{})}
	go raw.inv.run()
	go raw.sizes.run()
	go func() {
		defer close(s.served)
		server.Serve()
		s.finish()
	}()
	if err := server.WaitMount(); err != nil {
		return nil, fmt.Errorf("mount %s: %w", dir, errors.Join(err, s.Unmount()))
	}
	if err := setReadAhead(dir); err != nil {
		opt.Logger.Warn("read-ahead stays at the kernel's default: sequential reads are slower", "dir", dir, "err", err)
	}
	return s, nil
}

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
	done := make(chan error, 1)
	go func() { done <- s.server.Unmount() }() // it waits for the end of the connection
	late := time.NewTimer(unmountWait)
	defer late.Stop()
	for {
		select {
		case err := <-done:
			if err != nil {
				return fmt.Errorf("unmount %s: %w", s.dir, err)
			}
			s.Wait()
			return nil
		case <-late.C:
			if mountedType(s.dir) != "fuse."+fsType {
				s.raw.opt.Logger.Warn("unmounted here, but another mount namespace still has the mount", "dir", s.dir)
				return nil
			}
		}
	}
}

// Detach takes the mount out of the tree at once; programs that use it go on
// until they close what they have open.
func (s *Server) Detach() error { return detach(s.dir) }

func (s *Server) finish() {
	s.end.Do(func() {
		s.cancel()
		s.raw.inv.close()
		s.raw.sizes.close()
	})
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
func explain(dir string, opt Options, err error) error {
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("mount %s: %w: mounting without root needs fusermount3 (package fuse3): %w", dir, ErrNoRights, err)
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EACCES):
		return fmt.Errorf("mount %s: %w: %w; mounting needs CAP_SYS_ADMIN, or fusermount3 and write permission on the directory", dir, ErrNoRights, err)
	case strings.Contains(err.Error(), "fusermount"):
		return fmt.Errorf("mount %s: %w: fusermount3 refused: %s", dir, ErrNoRights, whyRefused(dir, opt, fuseConf, os.Getuid()))
	}
	return fmt.Errorf("mount %s: %w", dir, err)
}

// fuseConf is the configuration of fusermount3.
const fuseConf = "/etc/fuse.conf"

// whyRefused looks for what fusermount3 refuses to the user uid. It says so
// itself on standard error, which another process may have.
func whyRefused(dir string, opt Options, conf string, uid int) string {
	var st unix.Stat_t
	switch err := unix.Stat(dir, &st); {
	case opt.AllowOther && !allowsOther(conf):
		return "the option allow_other needs the line user_allow_other in " + conf
	case err != nil:
		return err.Error()
	case st.Mode&unix.S_ISVTX != 0 && int(st.Uid) != uid:
		return fmt.Sprintf("the folder has the sticky bit and does not belong to the user %d, who mounts", uid)
	case unix.Access(dir, unix.W_OK) != nil:
		return fmt.Sprintf("the user %d, who mounts, may not write to the folder", uid)
	}
	return "its message stands in the log of the process that mounts"
}

// allowsOther tells whether fusermount3 passes allow_other on.
func allowsOther(conf string) bool {
	text, err := os.ReadFile(conf)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if strings.TrimSpace(line) == "user_allow_other" {
			return true
		}
	}
	return false
}

// fsType is the subtype: the mount table shows fuse.ogw.
const fsType = "ogw"

func mountOptions(opt Options, exclusive bool) *fuse.MountOptions {
	m := &fuse.MountOptions{
		FsName:     opt.FSName,
		Name:       fsType,
		AllowOther: opt.AllowOther,
		Options:    []string{"default_permissions"},
		MaxWrite:   maxRequestBytes,
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
		DirectMountStrict:        os.Geteuid() == 0,
		Debug:                    opt.Debug,
		Logger:                   slog.NewLogLogger(opt.Logger.Handler(), slog.LevelDebug),
		ExtraCapabilities: fuse.CAP_ATOMIC_O_TRUNC | fuse.CAP_DONT_MASK | fuse.CAP_ASYNC_DIO |
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
	m.Options = append(m.Options, mountFlags(opt)...)
	m.DirectMountFlags = directFlags(opt)
	return m
}

// mountFlags are the flags that fusermount3 and go-fuse know by name.
func mountFlags(opt Options) []string {
	var list []string
	for _, f := range opt.MountFlags {
		if os.Geteuid() != 0 || slices.Contains([]string{"suid", "nosuid", "dev", "nodev", "exec", "noexec"}, f) {
			list = append(list, f)
		}
	}
	if opt.ReadOnly && os.Geteuid() != 0 {
		list = append(list, "ro")
	}
	return list
}

// directFlags are the flags of mount(2).
func directFlags(opt Options) uintptr {
	flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV)
	if opt.ReadOnly {
		flags |= unix.MS_RDONLY
	}
	for _, f := range opt.MountFlags {
		switch f {
		case "noatime":
			flags |= unix.MS_NOATIME
		case "sync":
			flags |= unix.MS_SYNCHRONOUS
		}
	}
	return flags
}

// detach is umount -l.
func detach(dir string) error {
	if err := unix.Unmount(dir, unix.MNT_DETACH); err == nil || os.Geteuid() == 0 {
		return err
	}
	out, err := exec.Command("fusermount3", "-u", "-z", dir).CombinedOutput()
	if err != nil {
		return fmt.Errorf("fusermount3 -u -z %s: %w: %s", dir, err, strings.TrimSpace(string(out)))
	}
	return nil
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
