package fusemount

import (
	"sync/atomic"

	"ogw/vfs"
)

// privClock saves asking before each write whether a file has setuid or
// setgid. It moves when any file may have come to have them; a handle notes
// the time at which it had none.
type privClock struct{ now atomic.Uint64 }

func (c *privClock) moved() { c.now.Add(1) }

// killSetID takes setuid and setgid off a file before its content changes
// through h. Capabilities go with the change itself.
func (f *rawFS) killSetID(h *fileHandle) error {
	now := f.privs.now.Load() + 1 // 0 means never
	if h.plain.Load() == now {
		return nil
	}
	if err := f.dropSetID(h.ino); err != nil {
		return err
	}
	h.plain.Store(now)
	return nil
}

// dropSetID removes setuid, and setgid where the group may execute: else it
// is no privilege.
func (f *rawFS) dropSetID(ino vfs.Ino) error {
	return f.dropBits(ino, func(mode uint32) uint32 {
		if mode&0o010 == 0 {
			return vfs.ModeSetUID
		}
		return vfs.ModeSetUID | vfs.ModeSetGID
	})
}

// dropSetGID follows the change of an ACL by somebody outside of the group.
func (f *rawFS) dropSetGID(ino vfs.Ino) error {
	return f.dropBits(ino, func(uint32) uint32 { return vfs.ModeSetGID })
}

func (f *rawFS) dropBits(ino vfs.Ino, of func(mode uint32) uint32) error {
	a, err := f.fs.GetAttr(f.ctx, ino)
	if err != nil {
		return err
	}
	mode := a.Mode & vfs.ModePermMask
	kept := mode &^ of(mode)
	if kept == mode {
		return nil
	}
	// As the superuser: whoever may write may do this much.
	if _, err = f.fs.SetAttr(f.ctx, vfs.Root, ino, vfs.SetAttr{Mode: &kept}); err != nil {
		return err
	}
	f.inv.modeChanged(ino)
	return nil
}
