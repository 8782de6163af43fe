package fusemount

import (
	"github.com/hanwen/go-fuse/v2/fuse"

	"ogw/vfs"
)

// killSetID takes setuid and setgid off a file before its content changes
// through h, by a caller who may not keep them. Capabilities go with the change
// itself.
func (f *rawFS) killSetID(h *fileHandle, in *fuse.InHeader) error {
	now := f.privs.now.Load() + 1 // 0 means never
	if h.plain.Load() == now {
		return nil
	}
	left, err := f.dropSetID(h.ino, in)
	if err == nil && left == 0 {
		h.plain.Store(now)
	}
	return err
}

// dropSetID takes off a file what setIDLost says, and returns what is left.
func (f *rawFS) dropSetID(ino vfs.Ino, in *fuse.InHeader) (left uint32, err error) {
	return f.dropBits(ino, func(a *vfs.Attr) uint32 { return setIDLost(a, in) })
}

// setIDLost returns which of setuid and setgid a change of content by a caller who may not keep
// them takes off a file, should it have them: setgid stays if it is no privilege, since the group
// may not execute the file, and the caller is in the group.
func setIDLost(a *vfs.Attr, in *fuse.InHeader) uint32 {
	const alone = vfs.ModeSetGID | 0o010
	if a.Mode&alone == vfs.ModeSetGID && inGroup(in, a.GID) {
		return vfs.ModeSetUID
	}
	return setIDs
}

const setIDs = vfs.ModeSetUID | vfs.ModeSetGID

// dropSetGID follows the change of an ACL by somebody outside of the group.
func (f *rawFS) dropSetGID(ino vfs.Ino) error {
	_, err := f.dropBits(ino, func(*vfs.Attr) uint32 { return vfs.ModeSetGID })
	return err
}

// dropBits takes setuid or setgid off a mode, if it has them, and returns what of both it
// has then.
func (f *rawFS) dropBits(ino vfs.Ino, of func(a *vfs.Attr) uint32) (left uint32, err error) {
	a, err := f.fs.GetAttr(f.ctx, ino)
	if err != nil || a.Mode&setIDs == 0 {
		return 0, err
	}
	bits := of(&a)
	if a.Mode&bits == 0 {
		return a.Mode & setIDs, nil
	}
	// As the superuser: every caller who may write may do this much.
	if a, err = f.fs.SetAttr(f.ctx, vfs.Root, ino, vfs.SetAttr{DropSetID: bits}); err != nil {
		return 0, err
	}
	f.inv.attrChanged(ino)
	return a.Mode & setIDs, nil
}
