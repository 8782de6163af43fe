package fusemount

import (
	"errors"
	"sync/atomic"

	"github.com/hanwen/go-fuse/v2/fuse"

	"ogw/vfs"
)

// xattrCapability holds a file's capabilities; changing the content or owner
// of a file revokes them, as setuid and setgid (HANDLE_KILLPRIV_V2).
const xattrCapability = "security.capability"

// privClock saves asking before each write whether a file has setuid,
// setgid or capabilities. It moves when any file may have come to have them;
// a handle notes the time at which it had none.
type privClock struct{ now atomic.Uint64 }

func (c *privClock) moved() { c.now.Add(1) }

// killPrivileges runs before a write through h; with setid, setuid and setgid
// go as well.
func (f *rawFS) killPrivileges(h *fileHandle, in *fuse.InHeader, setid bool) error {
	now := f.caps.now.Load() + 1 // 0 means never
	if h.plain.Load() == now {
		return nil
	}
	if err := f.dropPrivileges(in, h.ino, setid); err != nil {
		return err
	}
	if setid {
		h.plain.Store(now)
	}
	return nil
}

// dropPrivileges removes capabilities, and with setid setuid and setgid
// (setgid only where the group may execute: else it is no privilege).
func (f *rawFS) dropPrivileges(h *fuse.InHeader, ino vfs.Ino, setid bool) error {
	if setid {
		a, err := f.fs.GetAttr(f.ctx, ino)
		if err != nil {
			return err
		}
		mode := a.Mode & vfs.ModePermMask
		kept := mode &^ vfs.ModeSetUID
		if mode&0o010 != 0 {
			kept &^= vfs.ModeSetGID
		}
		if kept != mode {
			// As the superuser: whoever may write may do this much.
			if _, err := f.fs.SetAttr(f.ctx, vfs.Root, ino, vfs.SetAttr{Mode: &kept}); err != nil {
				return err
			}
		}
	}
	return f.dropCapability(h, ino)
}

func (f *rawFS) dropCapability(h *fuse.InHeader, ino vfs.Ino) error {
	err := f.fs.RemoveXattr(f.ctx, vfs.Root, ino, xattrCapability)
	if err == nil || errors.Is(err, vfs.ErrNoAttr) || errors.Is(err, vfs.ErrNotSupported) {
		return nil
	}
	return err
}
