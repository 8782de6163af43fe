package fusemount

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"ogw/vfs"
)

// label is what SELinux calls a file. Where it runs it answers for each file itself; where it
// does not, ls(1) asks for that of each file, until the answer is ENOTSUP: for which it
// takes the whole mount.
const label = "security.selinux"

// GetXAttr returns an attribute, or with an empty dest its size. A label is not supported
// until there is one.
func (f *rawFS) GetXAttr(cancel <-chan struct{}, h *fuse.InHeader, name string, dest []byte) (uint32, fuse.Status) {
	ctx := f.request(cancel, h)
	defer ctx.end()
	value, err := f.fs.GetXattr(ctx, cred(h), f.ino(h.NodeId), name)
	switch {
	case name != label:
	case err == nil:
		f.labels.Store(true)
	case errors.Is(err, vfs.ErrNoAttr) && !f.labels.Load():
		return 0, fuse.Status(unix.ENOTSUP)
	}
	if err != nil {
		return 0, f.status("getxattr", h, err)
	}
	return fill(dest, value)
}

// fill copies a value that fits, or reports the size that would.
func fill(dest, value []byte) (uint32, fuse.Status) {
	n := uint32(len(value))
	if len(dest) < len(value) {
		return n, fuse.ERANGE
	}
	copy(dest, value)
	return n, fuse.OK
}

// ListXAttr returns the names, each ended by a NUL.
func (f *rawFS) ListXAttr(cancel <-chan struct{}, h *fuse.InHeader, dest []byte) (uint32, fuse.Status) {
	ctx := f.request(cancel, h)
	defer ctx.end()
	names, err := f.fs.ListXattr(ctx, cred(h), f.ino(h.NodeId))
	if err != nil {
		return 0, f.status("listxattr", h, err)
	}
	// The kernel looks at who reads or changes one of trusted.*, but leaves lists to the file
	// system: as others, this one shows them to who may administer the machine.
	admin := sync.OnceValue(func() bool { return hasCapability(h.Pid, unix.CAP_SYS_ADMIN) })
	names = slices.DeleteFunc(names, func(n string) bool { return strings.HasPrefix(n, "trusted.") && !admin() })
	var list bytes.Buffer
	for _, n := range names {
		list.WriteString(n)
		list.WriteByte(0)
	}
	return fill(dest, list.Bytes())
}

// SetXAttr stores an attribute.
func (f *rawFS) SetXAttr(cancel <-chan struct{}, in *fuse.SetXAttrIn, name string, data []byte) fuse.Status {
	ctx := f.request(cancel, &in.InHeader)
	defer ctx.end()
	switch {
	case strings.HasPrefix(name, "system.posix_acl_"):
		f.privs.moved()
		defer f.privs.moved()
	case name == label:
		f.labels.Store(true)
	}
	ino := f.ino(in.NodeId)
	err := f.fs.SetXattr(f.once(ctx, &in.InHeader), cred(&in.InHeader), ino, vfs.Xattr{Name: name, Value: bytes.Clone(data)}, vfs.XattrFlags(in.Flags))
	if errors.Is(err, vfs.ErrDone) {
		err = nil
	}
	if err == nil && in.SetXAttrFlags&fuse.SETXATTR_ACL_KILL_SGID != 0 {
		err = f.dropSetGID(ino)
	}
	return f.status("setxattr", &in.InHeader, err)
}

// RemoveXAttr removes an attribute.
func (f *rawFS) RemoveXAttr(cancel <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	ctx := f.request(cancel, h)
	defer ctx.end()
	return f.status("removexattr", h, f.fs.RemoveXattr(f.once(ctx, h), cred(h), f.ino(h.NodeId), name))
}
