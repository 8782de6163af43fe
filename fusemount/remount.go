package fusemount

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// remountFlags are what the kernel keeps for each mount: attributes that a flag
// sets and clears.
var remountFlags = map[string]struct{ set, clear uint64 }{
	"ro": {unix.MOUNT_ATTR_RDONLY, 0}, "rw": {0, unix.MOUNT_ATTR_RDONLY},
	"nosuid": {unix.MOUNT_ATTR_NOSUID, 0}, "suid": {0, unix.MOUNT_ATTR_NOSUID},
	"nodev": {unix.MOUNT_ATTR_NODEV, 0}, "dev": {0, unix.MOUNT_ATTR_NODEV},
	"noexec": {unix.MOUNT_ATTR_NOEXEC, 0}, "exec": {0, unix.MOUNT_ATTR_NOEXEC},
	"noatime": {unix.MOUNT_ATTR_NOATIME, unix.MOUNT_ATTR__ATIME}, "relatime": {unix.MOUNT_ATTR_RELATIME, unix.MOUNT_ATTR__ATIME},
	"atime":      {unix.MOUNT_ATTR_RELATIME, unix.MOUNT_ATTR__ATIME},
	"nodiratime": {unix.MOUNT_ATTR_NODIRATIME, 0}, "diratime": {0, unix.MOUNT_ATTR_NODIRATIME},
	"nosymfollow": {unix.MOUNT_ATTR_NOSYMFOLLOW, 0}, "symfollow": {0, unix.MOUNT_ATTR_NOSYMFOLLOW},
}

// Remount changes flags of the mount at dir, whoever serves it: ro, rw, suid,
// nosuid, dev, nodev, exec, noexec, noatime, relatime, nodiratime, diratime,
// nosymfollow, symfollow; of two that exclude each other, the later one counts. sync and
// allow_other belong to all mounts of a superblock, and stay as they are. ErrMountPoint,
// ErrNoRights, unix.EBUSY for ro while programs have files open for writing.
func Remount(dir string, flags []string) error {
	entry := mountEntry(dir)
	i := slices.Index(entry, "-")
	if i < 0 || i+3 >= len(entry) || entry[i+1] != "fuse."+fsType {
		return fmt.Errorf("%w: %s is not a mount of ogw", ErrMountPoint, dir)
	}
	super := strings.Split(entry[i+3], ",")
	var attr unix.MountAttr
	for _, name := range flags {
		f, ok := remountFlags[name]
		switch {
		case (name == "sync" || name == "allow_other") && slices.Contains(super, name):
		case name == "sync" || name == "allow_other":
			return fmt.Errorf("remount %s: %s belongs to the mounts that share a cache: umount and mount again", dir, name)
		case !ok:
			return fmt.Errorf("remount %s: unknown flag %q", dir, name)
		}
		attr.Attr_set = attr.Attr_set&^f.clear | f.set
		attr.Attr_clr = attr.Attr_clr&^f.set | f.clear
	}
	err := unix.MountSetattr(unix.AT_FDCWD, dir, 0, &attr)
	if err == nil && attr.Attr_clr&unix.MOUNT_ATTR_RDONLY != 0 && slices.Contains(super, "ro") {
		err = writableSuperblock(dir)
	}
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("remount %s: %w: %w; it needs CAP_SYS_ADMIN", dir, ErrNoRights, err)
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("remount %s: %w: programs have files open for writing", dir, err)
	case err != nil:
		return fmt.Errorf("remount %s: %w", dir, err)
	}
	return nil
}

// writableSuperblock makes the superblock below a mount writable: fusermount3
// and mount(2) made it read-only with the mount. The call sets the mount's flags
// as well.
func writableSuperblock(dir string) error {
	flags := uintptr(unix.MS_REMOUNT)
	for _, name := range strings.Split(mountEntry(dir)[5], ",") {
		flags |= map[string]uintptr{"nosuid": unix.MS_NOSUID, "nodev": unix.MS_NODEV, "noexec": unix.MS_NOEXEC,
			"noatime": unix.MS_NOATIME, "relatime": unix.MS_RELATIME, "nodiratime": unix.MS_NODIRATIME,
			"nosymfollow": unix.MS_NOSYMFOLLOW}[name]
	}
	return unix.Mount("", dir, "", flags, "")
}
