package fusemount

import (
	"context"
	"math"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"ogw/vfs"
)

// Fallocate allocates, punches holes and zeroes.
func (f *rawFS) Fallocate(cancel <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	ctx := f.request(cancel, &in.InHeader)
	defer ctx.end()
	h := f.files.get(in.Fh)
	if h == nil {
		return fuse.EBADF
	}
	var mode vfs.AllocMode
	for _, m := range [...]struct {
		linux uint32
		vfs   vfs.AllocMode
	}{
		{unix.FALLOC_FL_KEEP_SIZE, vfs.AllocKeepSize},
		{unix.FALLOC_FL_PUNCH_HOLE, vfs.AllocPunchHole},
		{unix.FALLOC_FL_ZERO_RANGE, vfs.AllocZeroRange},
	} {
		if in.Mode&m.linux != 0 {
			mode |= m.vfs
			in.Mode &^= m.linux
		}
	}
	if in.Mode != 0 {
		return fuse.Status(syscall.EOPNOTSUPP)
	}
	if in.Offset > math.MaxInt64 || in.Length > math.MaxInt64-in.Offset {
		return fuse.Status(syscall.EFBIG)
	}
	_, done := f.surv.wrote(&in.InHeader)
	var err error
	if !done {
		err = f.allocate(ctx, h, in, mode)
	}
	if err == nil {
		err = f.stable(ctx, in.Fh, h)
	}
	return f.status("fallocate", &in.InHeader, err)
}

// allocate is Fallocate of what was not done yet.
func (f *rawFS) allocate(ctx context.Context, h *fileHandle, in *fuse.FallocateIn, mode vfs.AllocMode) error {
	defer h.writes.Add(1)
	// The kernel does not report here whether the caller may keep setuid and
	// setgid (CAP_FSETID): root may.
	if in.Uid != 0 {
		if err := f.killSetID(h, &in.InHeader); err != nil {
			return err
		}
	}
	err := h.file.Allocate(ctx, mode, int64(in.Offset), int64(in.Length))
	if err == nil {
		f.surv.note(&in.InHeader, 0)
	}
	return err
}

// Lseek finds data and holes; the kernel answers the other forms itself.
func (f *rawFS) Lseek(cancel <-chan struct{}, in *fuse.LseekIn, out *fuse.LseekOut) fuse.Status {
	ctx := f.request(cancel, &in.InHeader)
	defer ctx.end()
	h := f.files.get(in.Fh)
	if h == nil {
		return fuse.EBADF
	}
	if in.Offset > math.MaxInt64 {
		return fuse.Status(syscall.ENXIO)
	}
	var off int64
	var err error
	switch in.Whence {
	case unix.SEEK_DATA:
		off, err = h.file.SeekData(ctx, int64(in.Offset))
	case unix.SEEK_HOLE:
		off, err = h.file.SeekHole(ctx, int64(in.Offset))
	default:
		return fuse.EINVAL
	}
	out.Offset = uint64(off)
	return f.status("lseek", &in.InHeader, err)
}

// copyMax bounds one copy: its length is answered in 32 bits. The caller
// comes again for the rest.
const copyMax = 1 << 30

// CopyFileRange copies by reference where the VFS can.
func (f *rawFS) CopyFileRange(cancel <-chan struct{}, in *fuse.CopyFileRangeIn) (uint32, fuse.Status) {
	ctx := f.request(cancel, &in.InHeader)
	defer ctx.end()
	src, dst := f.files.get(in.FhIn), f.files.get(in.FhOut)
	if src == nil || dst == nil {
		return 0, fuse.EBADF
	}
	if in.Flags != 0 || in.OffIn > math.MaxInt64 || in.OffOut > math.MaxInt64 {
		return 0, fuse.EINVAL
	}
	n, done := f.surv.wrote(&in.InHeader)
	var err error
	if !done {
		n, err = f.copyRange(ctx, dst, src, in)
	}
	if n > 0 {
		if err = f.stable(ctx, in.FhOut, dst); err != nil {
			n = 0
		}
	}
	if err != nil && n == 0 {
		return 0, f.status("copy_file_range", &in.InHeader, err)
	}
	return uint32(n), fuse.OK
}

// copyRange is CopyFileRange of what was not done yet.
func (f *rawFS) copyRange(ctx context.Context, dst, src *fileHandle, in *fuse.CopyFileRangeIn) (int, error) {
	if in.Uid != 0 { // the kernel does not report whether the caller may keep them
		if err := f.killSetID(dst, &in.InHeader); err != nil {
			return 0, err
		}
	}
	defer dst.writes.Add(1)
	n, err := dst.file.CopyRange(ctx, int64(in.OffOut), src.file, int64(in.OffIn), int64(min(in.Len, copyMax)))
	if n == 0 && err != nil {
		return 0, err
	}
	if n > 0 && src.record&recordNoAtime == 0 && !f.quiet.Load() && src.file.Accessed(ctx) {
		f.inv.attrChanged(src.ino) // after a READ the kernel asks by itself
	}
	f.surv.note(&in.InHeader, int(n))
	return int(n), nil
}

// stable is what syncs is for requests that carry no flags: it makes durable what one did to a file
// that was opened with O_DSYNC, or is on a mount with sync. A file system has to do that by itself.
func (f *rawFS) stable(ctx context.Context, fh uint64, h *fileHandle) error {
	if h.record&recordSync == 0 {
		return nil
	}
	return f.save(ctx, fh, h)
}
