package fusemount

import (
	"context"
	"strings"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"ogw/vfs"
)

// Record is what is told of a request after it ended.
type Record struct {
	Operation string // as in Options.Observe
	Dir       string // of the mount; of all that share its superblock, with commas
	UID, PID  uint32 // of the program that asked
	Ino       vfs.Ino
	Name      string  // entry of Ino, "" for Ino itself
	ToDir     vfs.Ino // of a rename: where to
	ToName    string
	Detail    string // name of an attribute
	Errno     syscall.Errno
	// Rights tells that a bucket was made, removed or renamed, that its mode or
	// owner changed, or the ACL of anything.
	Rights bool
}

// Refused reports whether the request failed for want of a right.
func (r *Record) Refused() bool {
	return r.Errno == syscall.EACCES || r.Errno == syscall.EPERM || r.Errno == syscall.EROFS
}

// tell calls Options.Done for refusals and changes of rights, with DoneAll for
// everything.
func (o *observed) tell(operation string, h *fuse.InHeader, x *extra, s fuse.Status) {
	r := Record{Operation: operation, Errno: syscall.Errno(s)}
	r.Rights = s == fuse.OK && (x.rights || o.changesBucket(operation, h, x))
	if !r.Rights && !r.Refused() && !o.raw.opt.DoneAll {
		return
	}
	r.Ino = o.raw.ino(h.NodeId)
	if x.toDir != 0 {
		r.ToDir = o.raw.ino(x.toDir)
	}
	r.Dir, r.UID, r.PID = strings.Join(o.raw.conn.dirs(), ","), h.Uid, h.Pid
	r.Name, r.ToName, r.Detail = x.name, x.toName, x.detail
	o.raw.opt.Done(&r)
}

// changesBucket reports whether a request that succeeded made, removed or
// renamed a directory of the root.
func (o *observed) changesBucket(operation string, h *fuse.InHeader, x *extra) bool {
	inRoot := func(node uint64) bool { return node != 0 && o.raw.ino(node) == vfs.RootIno }
	switch operation {
	case "mkdir", "rmdir":
		return inRoot(h.NodeId)
	case "rename":
		return inRoot(h.NodeId) || inRoot(x.toDir)
	}
	return false
}

// isBucket reports whether the node of a request that succeeded is a bucket,
// or the root; only if somebody wants to know.
func (o *observed) isBucket(h *fuse.InHeader, s fuse.Status) bool {
	if s != fuse.OK || o.raw.opt.Done == nil {
		return false
	}
	a, err := o.raw.fs.GetAttr(context.Background(), o.raw.ino(h.NodeId))
	return err == nil && a.IsDir() && a.Parent == vfs.RootIno
}

// isACL reports whether an attribute is a POSIX ACL.
func isACL(attr string) bool { return strings.HasPrefix(attr, "system.posix_acl_") }

// Operations returns the names of what Records tell of.
func Operations() []string {
	return []string{"lookup", "getattr", "setattr", "mknod", "mkdir", "unlink", "rmdir", "rename", "link", "symlink",
		"readlink", "access", "getxattr", "listxattr", "setxattr", "removexattr", "create", "tmpfile", "open", "read",
		"lseek", "getlk", "setlk", "setlkw", "release", "write", "copyfilerange", "ioctl", "flush", "fsync", "fallocate",
		"opendir", "readdir", "readdirplus", "releasedir", "fsyncdir", "statfs", "statx"}
}
