package fusemount

import (
	"context"
	"encoding/binary"
	"syscall"
	"unsafe"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"ogw/vfs"
)

// The ioctls of chattr(1) and lsattr(1) (linux/fs.h). Since Linux 5.13 the
// kernel makes them itself for the system calls, on a file that it opens for
// that; before, it forwards those of programs.
const (
	iocFSGetXattr = 0x801c581f
	iocFSSetXattr = 0x401c5820
)

// fsXattr is struct fsxattr.
type fsXattr struct {
	Xflags, ExtSize, NExtents, ProjID, CowExtSize uint32
	Pad                                           [8]byte
}

const fsXattrBytes = int(unsafe.Sizeof(fsXattr{}))

// flagBits are the FileFlags as both pairs of ioctls have them: FS_*_FL and
// FS_XFLAG_*.
var flagBits = [...]struct {
	flag    vfs.FileFlags
	fl, xfl uint32
}{
	{vfs.FlagImmutable, 0x10, 0x08},
	{vfs.FlagAppend, 0x20, 0x10},
	{vfs.FlagNoDump, 0x40, 0x80},
	{vfs.FlagNoAtime, 0x80, 0x40},
}

// flagLetters are those that chattr(1) gives the flags.
const flagLetters = "iadA"

// Ioctl gets and sets file flags; there are no others.
func (f *rawFS) Ioctl(cancel <-chan struct{}, in *fuse.IoctlIn, inbuf []byte, _ *fuse.IoctlOut, outbuf []byte) fuse.Status {
	ctx := f.request(cancel, &in.InHeader)
	defer ctx.end()
	ino := f.ino(in.NodeId)
	clear(outbuf)
	switch in.Cmd {
	case unix.FS_IOC_GETFLAGS, iocFSGetXattr:
		a, err := f.fs.GetAttr(ctx, ino)
		if err == nil {
			err = putFlags(outbuf, in.Cmd == iocFSGetXattr, a.Flags)
		}
		return f.status("ioctl", &in.InHeader, err)
	case unix.FS_IOC_SETFLAGS, iocFSSetXattr:
		flags, err := parseFlags(inbuf, in.Cmd == iocFSSetXattr)
		if err == nil {
			err = f.setFlags(ctx, &in.InHeader, ino, flags)
		}
		return f.status("ioctl", &in.InHeader, err)
	}
	return fuse.Status(syscall.ENOTTY)
}

// setsFlags is what an ioctl that succeeds changes: flags bind administrators, too.
func setsFlags(cmd uint32, in []byte) extra {
	if cmd != unix.FS_IOC_SETFLAGS && cmd != iocFSSetXattr {
		return extra{}
	}
	flags, err := parseFlags(in, cmd == iocFSSetXattr)
	if err != nil {
		return extra{}
	}
	text := ""
	for i, b := range flagBits {
		if flags&b.flag != 0 {
			text += string(flagLetters[i])
		}
	}
	return extra{detail: "flags=" + text, rights: true}
}

// putFlags answers with the flags. Before Linux 5.13 there is room for 8 bytes
// of which callers read 4.
func putFlags(out []byte, extended bool, flags vfs.FileFlags) error {
	size := 4
	if extended {
		size = fsXattrBytes
	}
	if len(out) < size {
		return vfs.ErrInvalid
	}
	var bits uint32
	for _, b := range flagBits {
		switch {
		case flags&b.flag == 0:
		case extended:
			bits |= b.xfl
		default:
			bits |= b.fl
		}
	}
	binary.NativeEndian.PutUint32(out, bits)
	return nil
}

// parseFlags reads what is to be set. ErrNotSupported for what is not kept:
// other flags and projects. Hints of sizes do nothing without their flags.
func parseFlags(in []byte, extended bool) (flags vfs.FileFlags, err error) {
	size := 4
	if extended {
		size = fsXattrBytes
	}
	if len(in) < size {
		return 0, vfs.ErrInvalid
	}
	bits := binary.NativeEndian.Uint32(in)
	for _, b := range flagBits {
		bit := b.fl
		if extended {
			bit = b.xfl
		}
		if bits&bit != 0 {
			flags |= b.flag
		}
		bits &^= bit
	}
	const project = unsafe.Offsetof(fsXattr{}.ProjID)
	if bits != 0 || extended && binary.NativeEndian.Uint32(in[project:]) != 0 {
		return 0, vfs.ErrNotSupported
	}
	return flags, nil
}

// setFlags sets flags as the caller may.
func (f *rawFS) setFlags(ctx context.Context, h *fuse.InHeader, ino vfs.Ino, flags vfs.FileFlags) error {
	c := vfs.NewCred(h.Uid, h.Gid)
	if h.Uid != 0 && hasCapability(h.Pid, unix.CAP_LINUX_IMMUTABLE) {
		c = vfs.Root
	}
	if flags&(vfs.FlagImmutable|vfs.FlagAppend) != 0 {
		// What was written through mappings comes first.
		f.mayNotify(h)
		for _, o := range append(f.conn.others(), f) {
			if !o.inv.inTime(func() { o.inv.part(ino, 0, -1) }) {
				return vfs.ErrBusy
			}
		}
	}
	return f.fs.SetFlags(ctx, c, ino, flags)
}
