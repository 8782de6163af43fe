package fusemount

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"ogw/vfs"
)

// errNotShared means that a mount cannot show a superblock that is there, and
// needs one of its own.
var errNotShared = errors.New("the superblock cannot be shared")

// openSuperblock makes a mount for a connection, in no place of the tree yet.
// The kernel makes a superblock for a /dev/fuse that has none, and else one
// more mount of the superblock that it has (Linux 5.15).
func openSuperblock(device int, opt *Options) (tree int, err error) {
	c, err := unix.Fsopen("fuse", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("fsopen: %w", err)
	}
	defer unix.Close(c)
	for _, x := range [...][2]string{
		{"source", opt.FSName}, {"subtype", fsType}, {"fd", fmt.Sprint(device)}, {"rootmode", fmt.Sprintf("%o", unix.S_IFDIR)},
		{"user_id", fmt.Sprint(os.Geteuid())}, {"group_id", fmt.Sprint(os.Getegid())}, {"max_read", fmt.Sprint(maxRequestBytes)},
	} {
		if err := unix.FsconfigSetString(c, x[0], x[1]); err != nil {
			return -1, fmt.Errorf("fsconfig %s: %w", x[0], err)
		}
	}
	flags := []string{"default_permissions"}
	if opt.AllowOther {
		flags = append(flags, "allow_other")
	}
	if opt.sync() {
		flags = append(flags, "sync")
	}
	for _, x := range flags {
		if err := unix.FsconfigSetFlag(c, x); err != nil {
			return -1, fmt.Errorf("fsconfig %s: %w", x, err)
		}
	}
	if err := unix.FsconfigCreate(c); err != nil {
		return -1, fmt.Errorf("fsconfig: %w", err)
	}
	if tree, err = unix.Fsmount(c, unix.FSMOUNT_CLOEXEC, mountAttributes(opt)); err != nil {
		return -1, fmt.Errorf("fsmount: %w", err)
	}
	return tree, nil
}

// mountAttributes are what the kernel keeps for each mount, as fsmount(2) takes it.
func mountAttributes(opt *Options) (attributes int) {
	flags := directFlags(*opt)
	for _, x := range [...]struct {
		flag      uintptr
		attribute int
	}{
		{unix.MS_RDONLY, unix.MOUNT_ATTR_RDONLY}, {unix.MS_NOSUID, unix.MOUNT_ATTR_NOSUID}, {unix.MS_NODEV, unix.MOUNT_ATTR_NODEV},
		{unix.MS_NOEXEC, unix.MOUNT_ATTR_NOEXEC}, {unix.MS_NOATIME, unix.MOUNT_ATTR_NOATIME},
		{unix.MS_NODIRATIME, unix.MOUNT_ATTR_NODIRATIME}, {unix.MS_NOSYMFOLLOW, unix.MOUNT_ATTR_NOSYMFOLLOW},
	} {
		if flags&x.flag != 0 {
			attributes |= x.attribute
		}
	}
	return attributes
}

// attachTries bounds how often the way to a directory is walked that is being
// renamed concurrently.
const attachTries = 3

// attach puts a mount that openSuperblock made at dir, or if root is not the
// namespace's, a mount of that directory alone. It returns the mount's ID, and
// errNotShared if the kernel cannot show a part of it.
//
// Its thread has no /dev/fuse (see sizes), since the way goes through the mount.
func attach(fs pathFinder, tree int, root vfs.Ino, dir string) (id uint64, err error) {
	done := make(chan struct{})
	go onOwnThread(func() {
		defer close(done)
		if err = ownDescriptors(tree); err != nil {
			return
		}
		defer func() { _ = unix.Chdir("/") }() // cannot fail
		id, err = attachPart(fs, root, dir)
	})
	<-done
	return id, err
}

// attachPart is attach for the mount that is the working directory.
func attachPart(fs pathFinder, root vfs.Ino, dir string) (id uint64, err error) {
	from := unix.AT_FDCWD
	if root != vfs.RootIno {
		if from, err = openPart(fs, root); err != nil {
			return 0, err
		}
		defer unix.Close(from)
	}
	if id, err = mountID(from); err != nil {
		return 0, err
	}
	if err := unix.MoveMount(from, "", unix.AT_FDCWD, dir, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return 0, fmt.Errorf("move_mount: %w", err)
	}
	return id, nil
}

// openPart makes a mount of one directory out of the one that is the working
// directory.
func openPart(fs pathFinder, root vfs.Ino) (tree int, err error) {
	for range attachTries {
		var path string
		if path, err = fs.KeyOf(context.Background(), root); err != nil {
			return -1, err
		}
		var fd int
		if fd, err = walkTo(path, root); err != nil {
			continue
		}
		tree, err = unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
		unix.Close(fd)
		if err == nil {
			return tree, nil
		}
		err = fmt.Errorf("open_tree: %w", err) // before Linux 6.15, of what is not in the tree
		break
	}
	return -1, fmt.Errorf("%w: directory %d: %w", errNotShared, root, err)
}

// walkTo opens a directory below the working directory, if it is the one with
// that number. No link leads the way elsewhere.
func walkTo(path string, ino vfs.Ino) (fd int, err error) {
	if fd, err = unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV}); err != nil {
		return -1, err
	}
	var st unix.Statx_t
	if err = unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_INO, &st); err == nil && st.Ino == uint64(ino) {
		return fd, nil
	}
	unix.Close(fd)
	if err == nil {
		err = unix.ESTALE // renamed concurrently
	}
	return -1, err
}

// mountID returns the unique ID of the mount of a descriptor (Linux 6.8).
func mountID(fd int) (uint64, error) {
	var st unix.Statx_t
	err := unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_MNT_ID_UNIQUE, &st)
	if err == nil && st.Mask&unix.STATX_MNT_ID_UNIQUE == 0 {
		err = unix.ENOSYS
	}
	if err != nil {
		return 0, fmt.Errorf("%w: its mount has no ID: %w", errNotShared, err)
	}
	return st.Mnt_id, nil
}

// pollName is a name that go-fuse answers for itself.
const pollName = ".go-fuse-epoll-hack"

// noPoll lets the kernel learn that files take no part in poll(2), as regular
// files do not. Else it asks when a Go program opens its first file here; if that
// is this one, its scheduler waits for the answer that it should give.
//
// root shows the root of the superblock. That is a call to ourselves, so the
// thread has no /dev/fuse (see sizes).
func noPoll(root int) error {
	result := make(chan error, 1)
	go onOwnThread(func() {
		if err := ownDescriptors(root); err != nil {
			result <- err
			return
		}
		fd, err := unix.Open(pollName, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			_, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN | unix.POLLPRI | unix.POLLOUT}}, 0)
			err = errors.Join(err, unix.Close(fd))
		}
		result <- errors.Join(err, unix.Chdir("/"))
	})
	return <-result
}
