package xattr

import (
	"strings"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/perm"
	"ogw/vfs/internal/posixacl"
	"ogw/vfs/internal/record"
)

const (
	// MaxNameBytes and MaxValueBytes are Linux's XATTR_NAME_MAX and XATTR_SIZE_MAX.
	MaxNameBytes  = 255
	MaxValueBytes = 64 << 10
	// MaxListBytes bounds all names of one inode, Linux's XATTR_LIST_MAX.
	MaxListBytes = 64 << 10
	// MaxBytes bounds all values of one inode, so that one transaction of etcd copies them.
	MaxBytes = 1 << 20
	// MaxShownBytes bounds what is read of an object's user metadata to be shown, more
	// than any door sends: two of the longest values.
	MaxShownBytes = 2 * MaxValueBytes

	// User begins the names of those that are user metadata at the object doors.
	User     = "user."
	trusted  = "trusted."
	security = "security."

	// Capability holds the capabilities of a program (capabilities(7)).
	Capability = "security.capability"
)

// IsACL reports whether name is that of a POSIX ACL.
func IsACL(name string) bool {
	return name == posixacl.XattrAccess || name == posixacl.XattrDefault
}

// CheckName checks length and namespace. fserr.ErrNotSupported for a namespace
// that does not exist, fserr.ErrRange for a name that is too long (xattr(7)).
func CheckName(name string) error {
	if len(name) > MaxNameBytes {
		return fserr.ErrRange
	}
	if strings.IndexByte(name, 0) >= 0 {
		return fserr.ErrInvalid
	}
	for _, ns := range [...]string{User, trusted, security} {
		if strings.HasPrefix(name, ns) {
			if len(name) == len(ns) {
				return fserr.ErrInvalid
			}
			return nil
		}
	}
	if IsACL(name) {
		return nil
	}
	return fserr.ErrNotSupported
}

// CheckWrite checks cred's right to change attribute name of n.
func CheckWrite(r cluster.Reader, cred *perm.Cred, n *record.Inode, name string) error {
	if err := perm.FlagsOf(n).CheckFree(); err != nil {
		return err
	}
	switch {
	case IsACL(name):
		if n.IsSymlink() {
			return fserr.ErrNotSupported
		}
		if !cred.Owns(n) {
			return fserr.ErrPerm
		}
		return nil
	case strings.HasPrefix(name, User):
		if !n.IsRegular() && !n.IsDir() {
			return fserr.ErrPerm
		}
		if n.IsDir() && n.Mode&record.ModeSticky != 0 && !cred.Owns(n) {
			return fserr.ErrPerm
		}
		return perm.Check(r, cred, n, perm.AccessWrite)
	case !cred.Rooted():
		return fserr.ErrPerm
	}
	return nil
}

// CheckRead checks cred's right to read attribute name of n.
func CheckRead(r cluster.Reader, cred *perm.Cred, n *record.Inode, name string) error {
	switch {
	case strings.HasPrefix(name, User):
		if !n.IsRegular() && !n.IsDir() {
			return fserr.ErrNoAttr
		}
		return perm.Check(r, cred, n, perm.AccessRead)
	case strings.HasPrefix(name, trusted) && !cred.Rooted():
		return fserr.ErrNoAttr
	}
	return nil
}

// Hidden reports whether cred is not shown an attribute in a list.
func Hidden(cred *perm.Cred, name string) bool {
	return strings.HasPrefix(name, trusted) && !cred.Rooted()
}
