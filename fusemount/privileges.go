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

// dropSetID removes setuid, and setgid unless it is no privilege, since the
// group may not execute the file, and the caller is in the group. It returns
// what is left of them.
func (f *rawFS) dropSetID(ino vfs.Ino, in *fuse.InHeader) (left uint32, err error) {
	return f.dropBits(ino, func(a *vfs.Attr) uint32 {
		const alone = vfs.ModeSetGID | 0o010
		if a.Mode&alone == vfs.ModeSetGID && inGroup(in, a.GID) {
			return vfs.ModeSetUID
		}
		return vfs.ModeSetUID | vfs.ModeSetGID
	})
}

// dropSetGID follows the change of an ACL by somebody outside of the group.
func (f *rawFS) dropSetGID(ino vfs.Ino) error {
	_, err := f.dropBits(ino, func(*vfs.Attr) uint32 { return vfs.ModeSetGID })
	return err
}

// dropBits takes bits off a mode and returns which of setuid and setgid it has
// then.
func (f *rawFS) dropBits(ino vfs.Ino, of func(a *vfs.Attr) uint32) (left uint32, err error) {
	a, err := f.fs.GetAttr(f.ctx, ino)
	if err != nil {
		return 0, err
	}
	mode := a.Mode & vfs.ModePermMask
	if mode&(vfs.ModeSetUID|vfs.ModeSetGID) == 0 {
		return 0, nil
	}
	kept := mode &^ of(&a)
	left = kept & (vfs.ModeSetUID | vfs.ModeSetGID)
	if kept == mode {
		return left, nil
	}
	// As the superuser: every caller who may write may do this much.
	if _, err = f.fs.SetAttr(f.ctx, vfs.Root, ino, vfs.SetAttr{Mode: &kept}); err != nil {
		return left, err
	}
	f.inv.attrChanged(ino)
	return left, nil
}
