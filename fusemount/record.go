package fusemount

import (
	"strings"
	"syscall"

	"ogw/vfs"
)

// Record describes a request after it ended.
type Record struct {
	Operation string // as in Options.Observe
	Dir       string // of the mount; of all that share its superblock, with commas
	UID, PID  uint32 // of the program that asked
	Ino       vfs.Ino
	Name      string  // entry of Ino, "" for Ino itself
	ToDir     vfs.Ino // of a rename: where to
	ToName    string
	Detail    string // name of an attribute, file flags that were set
	Errno     syscall.Errno
	// Rights reports whether a bucket was made, removed or renamed, that its mode or
	// owner changed, or the ACL or the file flags of anything.
	Rights bool
}

// Refused reports whether the request failed for want of a right.
func (r *Record) Refused() bool {
	return r.Errno == syscall.EACCES || r.Errno == syscall.EPERM || r.Errno == syscall.EROFS
}

// isACL reports whether an attribute is a POSIX ACL.
func isACL(attr string) bool { return strings.HasPrefix(attr, "system.posix_acl_") }

// Operations returns the names of what Records describe.
func Operations() []string {
	return []string{"lookup", "getattr", "setattr", "mknod", "mkdir", "unlink", "rmdir", "rename", "link", "symlink",
		"readlink", "access", "getxattr", "listxattr", "setxattr", "removexattr", "create", "tmpfile", "open", "read",
		"lseek", "getlk", "setlk", "setlkw", "release", "write", "copyfilerange", "ioctl", "flush", "fsync", "fallocate",
		"opendir", "readdir", "readdirplus", "releasedir", "fsyncdir", "statfs", "statx"}
}
