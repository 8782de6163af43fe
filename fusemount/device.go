package fusemount

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// mountDevice mounts a new connection on dir, and returns its /dev/fuse: root
// by mount(2), others by fusermount3.
func mountDevice(dir string, opt Options) (fd int, err error) {
	if os.Geteuid() == 0 {
		return mountDirectly(dir, opt)
	}
	return mountByHelper(dir, opt)
}

// kernelOptions are those that mount(2) and fusermount3 both take.
func kernelOptions(opt Options) []string {
	list := []string{"default_permissions", fmt.Sprintf("max_read=%d", maxRequestBytes)}
	if opt.AllowOther {
		list = append(list, "allow_other")
	}
	return list
}

func mountDirectly(dir string, opt Options) (fd int, err error) {
	if fd, err = unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0); err != nil {
		return -1, err
	}
	list := append(kernelOptions(opt), fmt.Sprintf("fd=%d", fd), fmt.Sprintf("rootmode=%o", unix.S_IFDIR),
		fmt.Sprintf("user_id=%d", os.Geteuid()), fmt.Sprintf("group_id=%d", os.Getegid()))
	if err = unix.Mount(opt.FSName, dir, "fuse."+fsType, directFlags(opt), strings.Join(list, ",")); err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// directFlags are the flags of mount(2).
func directFlags(opt Options) uintptr {
	flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV)
	if opt.ReadOnly {
		flags |= unix.MS_RDONLY
	}
	for _, f := range opt.MountFlags {
		switch f {
		case "suid":
			flags &^= unix.MS_NOSUID
		case "nosuid":
			flags |= unix.MS_NOSUID
		case "dev":
			flags &^= unix.MS_NODEV
		case "nodev":
			flags |= unix.MS_NODEV
		case "exec":
			flags &^= unix.MS_NOEXEC
		case "noexec":
			flags |= unix.MS_NOEXEC
		case "noatime":
			flags |= unix.MS_NOATIME
		case "nodiratime":
			flags |= unix.MS_NODIRATIME
		case "nosymfollow":
			flags |= unix.MS_NOSYMFOLLOW
		case "sync":
			flags |= unix.MS_SYNCHRONOUS
		}
	}
	return flags
}

// errHelper is wrapped by the message of fusermount3 when it refuses.
var errHelper = errors.New("fusermount3")

// helper finds fusermount3, or its predecessor.
func helper() (string, error) {
	path, err := exec.LookPath("fusermount3")
	if err != nil {
		if old, e := exec.LookPath("fusermount"); e == nil {
			return old, nil
		}
	}
	return path, err
}

// mountByHelper lets fusermount3 open /dev/fuse and mount it. It hands the
// descriptor over the socket whose number it finds in the environment.
func mountByHelper(dir string, opt Options) (fd int, err error) {
	path, err := helper()
	if err != nil {
		return -1, err
	}
	if slices.Contains(opt.MountFlags, "nodiratime") {
		return -1, fmt.Errorf("%w takes no nodiratime: only root mounts with it", errHelper)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(pair[0])
	theirs := os.NewFile(uintptr(pair[1]), "socket")
	list := append(kernelOptions(opt), "fsname="+escapeOption(opt.FSName), "subtype="+fsType)
	list = append(list, opt.MountFlags...)
	if opt.ReadOnly {
		list = append(list, "ro")
	}
	cmd := exec.Command(path, "-o", strings.Join(list, ","), "--", dir)
	cmd.Env = append(os.Environ(), "_FUSE_COMMFD=3") // the first of ExtraFiles
	cmd.ExtraFiles = []*os.File{theirs}
	err = runHelper(cmd)
	theirs.Close() // or we would wait for a message that nobody sends
	if err != nil {
		return -1, err
	}
	return receiveDescriptor(pair[0])
}

// runHelper runs fusermount3; its message becomes the error.
func runHelper(cmd *exec.Cmd) error {
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	text := strings.TrimPrefix(string(bytes.TrimSpace(out)), cmd.Path+": ")
	return fmt.Errorf("%w: %s (%w)", errHelper, text, err)
}

func escapeOption(s string) string { return strings.NewReplacer(`\`, `\\`, `,`, `\,`).Replace(s) }

// receiveDescriptor takes the one descriptor that a message carries.
func receiveDescriptor(socket int) (fd int, err error) {
	control := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socket, make([]byte, 1), control, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("%w: its descriptor: %w", errHelper, err)
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) != 1 {
		return -1, fmt.Errorf("%w: it sent no descriptor: %d messages, %w", errHelper, len(messages), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return -1, fmt.Errorf("%w: it sent %d descriptors: %w", errHelper, len(fds), err)
	}
	return fds[0], nil
}

const (
	// unmountTries and unmountPause: what a program closed last, the kernel
	// releases a moment later. The pause doubles each time.
	unmountTries = 5
	unmountPause = 5 * time.Millisecond
)

// unmountDevice takes the mount out of the tree, if no program uses it.
func unmountDevice(dir string) (err error) {
	pause := unmountPause
	for range unmountTries {
		if err = unmountNow(dir); err == nil {
			return nil
		}
		time.Sleep(pause)
		pause *= 2
	}
	return err
}

func unmountNow(dir string) error {
	if os.Geteuid() == 0 {
		return unix.Unmount(dir, 0)
	}
	return unmountByHelper("-u", dir)
}

// detach is umount -l.
func detach(dir string) error {
	if err := unix.Unmount(dir, unix.MNT_DETACH); err == nil || os.Geteuid() == 0 {
		return err
	}
	return unmountByHelper("-u", "-z", dir)
}

func unmountByHelper(args ...string) error {
	path, err := helper()
	if err != nil {
		return err
	}
	err = runHelper(exec.Command(path, args...))
	if err != nil && strings.Contains(strings.ToLower(err.Error()), "busy") {
		return fmt.Errorf("%w: %w", syscall.EBUSY, err)
	}
	return err
}
