package fusemount

import (
	"context"
	"errors"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"ogw/vfs"
)

// lookupTries bounds how often a name is looked up again because what it stood
// for was removed concurrently; each time, another request has made progress.
const lookupTries = 1000

// Lookup finds a name. An absent one is answered with node 0, so that the
// kernel remembers its absence.
func (f *rawFS) Lookup(cancel <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	ctx := f.request(cancel, h)
	defer ctx.end()
	var err error
	for range lookupTries {
		var a vfs.Attr
		at := f.moment()
		a, err = f.find(ctx, h, name)
		if errors.Is(err, vfs.ErrNotExist) && f.opt.EntryTimeout > 0 {
			if f.primary.Load() && f.inv.count() == at.since {
				out.SetEntryTimeout(f.opt.EntryTimeout)
				return fuse.OK
			}
			return fuse.ENOENT
		}
		if err != nil {
			break
		}
		if err = f.fillEntry(&a, out, at); !errors.Is(err, vfs.ErrStale) {
			break
		}
	}
	return f.status("lookup", h, err)
}

// find looks a name up. The kernel asks for "." and ".." only to turn a file
// handle (open_by_handle_at, an NFS server of its own) into an inode that it
// does not know: one without links is about to go, or is another's.
func (f *rawFS) find(ctx context.Context, h *fuse.InHeader, name string) (vfs.Attr, error) {
	ino := f.ino(h.NodeId)
	if name != "." && name != ".." {
		return f.fs.Lookup(ctx, cred(h), ino, name)
	}
	a, err := f.fs.GetAttr(ctx, ino)
	if err == nil && a.Nlink == 0 {
		err = vfs.ErrNotExist
	}
	if err != nil || name == "." {
		return a, err
	}
	if !a.IsDir() || ino == f.opt.Root {
		return a, vfs.ErrNotExist
	}
	return f.fs.GetAttr(ctx, a.Parent)
}

// Forget is called when the kernel drops an inode, which it was given n times.
func (f *rawFS) Forget(node, n uint64) {
	ino := f.ino(node)
	if f.holds.Release(ino, n) { // else it was looked up again meanwhile, and may be open
		f.pages.forget(ino)
	}
}

// GetAttr is stat.
func (f *rawFS) GetAttr(cancel <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	ctx := f.request(cancel, &in.InHeader)
	defer ctx.end()
	at := f.glance()
	a, err := f.fs.GetAttr(ctx, f.ino(in.NodeId))
	if err != nil {
		return f.status("getattr", &in.InHeader, err)
	}
	f.renewPages(&in.InHeader, &a, in.Flags()&fuse.FUSE_GETATTR_FH != 0)
	f.fillAttr(&a, &out.Attr)
	out.SetTimeout(f.keeps(&a, at))
	return fuse.OK
}

// Statx is statx(2), which the kernel asks only for the time of birth.
func (f *rawFS) Statx(cancel <-chan struct{}, in *fuse.StatxIn, out *fuse.StatxOut) fuse.Status {
	ctx := f.request(cancel, &in.InHeader)
	defer ctx.end()
	at := f.glance()
	a, err := f.fs.GetAttr(ctx, f.ino(in.NodeId))
	if err != nil {
		return f.status("statx", &in.InHeader, err)
	}
	f.renewPages(&in.InHeader, &a, false)
	out.Mask = unix.STATX_BASIC_STATS | unix.STATX_BTIME
	out.Ino, out.Size, out.Blocks = uint64(a.Ino), uint64(a.Size), uint64(a.Used+511)/512
	out.Mode, out.Nlink, out.Uid, out.Gid = uint16(a.Mode), a.Nlink, a.UID, a.GID
	out.RdevMajor, out.RdevMinor = unix.Major(uint64(a.Rdev)), unix.Minor(uint64(a.Rdev))
	out.Blksize = attrBlockSize
	for _, t := range [...]struct {
		to *fuse.SxTime
		at vfs.Time
	}{{&out.Atime, a.Atime}, {&out.Mtime, a.Mtime}, {&out.Ctime, vfs.TimeNS(a.CtimeNS)}, {&out.Btime, vfs.TimeNS(a.BtimeNS)}} {
		t.to.Sec, t.to.Nsec = unixTime(t.at)
	}
	out.SetTimeout(f.keeps(&a, at))
	return fuse.OK
}

// SetAttr is chmod, chown, truncate and utimensat.
func (f *rawFS) SetAttr(cancel <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	ctx := f.request(cancel, &in.InHeader)
	defer ctx.end()
	since := f.inv.count()
	ino := f.ino(in.NodeId)
	set := setAttrOf(in)
	if set.Mode != nil || set.UID != nil || set.GID != nil {
		f.privs.moved()
		defer f.privs.moved() // who asked before it was done asks again
	}
	if set.Size != nil && !set.KeepSetID {
		// With the size, so that what refuses that leaves them, too.
		a, err := f.fs.GetAttr(ctx, ino)
		if err != nil {
			return f.status("setattr", &in.InHeader, err)
		}
		set.DropSetID = setIDLost(&a, &in.InHeader)
	}
	a, err := f.fs.SetAttr(f.once(ctx, &in.InHeader), cred(&in.InHeader), ino, set)
	if errors.Is(err, vfs.ErrDone) {
		a, err = f.fs.GetAttr(ctx, ino)
	}
	if err != nil {
		return f.status("setattr", &in.InHeader, err)
	}
	f.pages.told(&a)
	f.fillAttr(&a, &out.Attr)
	if f.inv.count() == since && !f.beside {
		out.SetTimeout(f.opt.AttrTimeout)
	}
	return fuse.OK
}

func setAttrOf(in *fuse.SetAttrIn) vfs.SetAttr {
	var set vfs.SetAttr
	if m, ok := in.GetMode(); ok {
		set.Mode = &m
	}
	if u, ok := in.GetUID(); ok {
		set.UID = &u
	}
	if g, ok := in.GetGID(); ok {
		set.GID = &g
	}
	if n, ok := in.GetSize(); ok {
		size := int64(n)
		set.Size = &size
		// A change of owner clears setuid and setgid whoever makes it; one of
		// size only if the caller lacks CAP_FSETID, as the kernel reports.
		set.KeepSetID = in.Valid&fuse.FATTR_KILL_SUIDGID == 0
	}
	if in.Valid&fuse.FATTR_ATIME_NOW != 0 {
		set.AtimeNow = true
	} else if in.Valid&fuse.FATTR_ATIME != 0 {
		set.Atime = &vfs.Time{Sec: int64(in.Atime), Nsec: in.Atimensec}
	}
	if in.Valid&fuse.FATTR_MTIME_NOW != 0 {
		set.MtimeNow = true
	} else if in.Valid&fuse.FATTR_MTIME != 0 {
		set.Mtime = &vfs.Time{Sec: int64(in.Mtime), Nsec: in.Mtimensec}
	}
	return set
}

// Mknod makes a special or regular file.
func (f *rawFS) Mknod(cancel <-chan struct{}, in *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	ctx := f.request(cancel, &in.InHeader)
	defer ctx.end()
	at := f.moment()
	a, err := f.fs.Mknod(f.once(ctx, &in.InHeader), credUmask(&in.InHeader, in.Umask), f.ino(in.NodeId), name, vfs.NodeOptions{Mode: in.Mode, Rdev: in.Rdev})
	return f.made(making{"mknod", &in.InHeader, name, at}, &a, err, out)
}

// Mkdir makes a directory.
func (f *rawFS) Mkdir(cancel <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	ctx := f.request(cancel, &in.InHeader)
	defer ctx.end()
	at := f.moment()
	a, err := f.fs.Mkdir(f.once(ctx, &in.InHeader), credUmask(&in.InHeader, in.Umask), f.ino(in.NodeId), name, in.Mode)
	return f.made(making{"mkdir", &in.InHeader, name, at}, &a, err, out)
}

// Symlink makes a symbolic link.
func (f *rawFS) Symlink(cancel <-chan struct{}, h *fuse.InHeader, target, name string, out *fuse.EntryOut) fuse.Status {
	ctx := f.request(cancel, h)
	defer ctx.end()
	at := f.moment()
	a, err := f.fs.Symlink(f.once(ctx, h), cred(h), f.ino(h.NodeId), name, target)
	return f.made(making{"symlink", h, name, at}, &a, err, out)
}

// Link makes a hard link.
func (f *rawFS) Link(cancel <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	ctx := f.request(cancel, &in.InHeader)
	defer ctx.end()
	at := f.moment()
	a, err := f.fs.Link(f.once(ctx, &in.InHeader), cred(&in.InHeader), f.ino(in.Oldnodeid), f.ino(in.NodeId), name)
	return f.made(making{"link", &in.InHeader, name, at}, &a, err, out)
}

// making is a request that makes an entry.
type making struct {
	op   string
	h    *fuse.InHeader
	name string
	at   moment // before it began
}

// made answers with what was made. If somebody removed it at once, ESTALE has
// the kernel make it again.
func (f *rawFS) made(m making, a *vfs.Attr, err error, out *fuse.EntryOut) fuse.Status {
	if errors.Is(err, vfs.ErrDone) {
		*a, err = f.fs.Lookup(f.ctx, cred(m.h), f.ino(m.h.NodeId), m.name)
	}
	if err == nil {
		err = f.fillEntry(a, out, m.at)
	}
	return f.status(m.op, m.h, err)
}

// Readlink returns a link's target.
func (f *rawFS) Readlink(cancel <-chan struct{}, h *fuse.InHeader) ([]byte, fuse.Status) {
	ctx := f.request(cancel, h)
	defer ctx.end()
	target, err := f.fs.Readlink(ctx, f.ino(h.NodeId))
	if err != nil {
		return nil, f.status("readlink", h, err)
	}
	if !f.quiet.Load() {
		f.fs.Accessed(ctx, f.ino(h.NodeId))
	}
	return []byte(target), fuse.OK
}

// Unlink removes a name that is no directory.
func (f *rawFS) Unlink(cancel <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	ctx := f.request(cancel, h)
	defer ctx.end()
	return f.status("unlink", h, f.fs.Unlink(f.once(ctx, h), cred(h), f.ino(h.NodeId), name))
}

// Rmdir removes an empty directory.
func (f *rawFS) Rmdir(cancel <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	ctx := f.request(cancel, h)
	defer ctx.end()
	return f.status("rmdir", h, f.fs.Rmdir(f.once(ctx, h), cred(h), f.ino(h.NodeId), name))
}

// renameFlags of renameat2(2).
var renameFlags = [...]struct {
	kernel uint32
	flag   vfs.RenameFlags
}{
	{unix.RENAME_NOREPLACE, vfs.RenameNoReplace},
	{unix.RENAME_EXCHANGE, vfs.RenameExchange},
	{unix.RENAME_WHITEOUT, vfs.RenameWhiteout},
}

// Rename is renameat2.
func (f *rawFS) Rename(cancel <-chan struct{}, in *fuse.RenameIn, name, newName string) fuse.Status {
	ctx := f.request(cancel, &in.InHeader)
	defer ctx.end()
	var flags vfs.RenameFlags
	for _, x := range renameFlags {
		if in.Flags&x.kernel != 0 {
			flags |= x.flag
			in.Flags &^= x.kernel
		}
	}
	if in.Flags != 0 {
		return fuse.EINVAL
	}
	err := f.fs.Rename(f.once(ctx, &in.InHeader), cred(&in.InHeader), vfs.EntryName{Dir: f.ino(in.NodeId), Name: name}, vfs.EntryName{Dir: f.ino(in.Newdir), Name: newName}, flags)
	return f.status("rename", &in.InHeader, err)
}

// Access is asked only where the kernel does not check permissions itself.
func (f *rawFS) Access(cancel <-chan struct{}, in *fuse.AccessIn) fuse.Status {
	ctx := f.request(cancel, &in.InHeader)
	defer ctx.end()
	c := vfs.NewCred(in.Uid, in.Gid)
	return f.status("access", &in.InHeader, f.fs.Access(ctx, c, f.ino(in.NodeId), in.Mask))
}

// statfsBlock is the unit in which sizes are reported.
const statfsBlock = 4096

// StatFs returns the size of the whole.
func (f *rawFS) StatFs(cancel <-chan struct{}, h *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	ctx := f.request(cancel, h)
	defer ctx.end()
	s, err := f.fs.StatFS(ctx)
	if err != nil {
		return f.status("statfs", h, err)
	}
	out.Bsize, out.Frsize = statfsBlock, statfsBlock
	out.Blocks = uint64(s.TotalBytes) / statfsBlock
	out.Bfree = uint64(s.TotalBytes-s.UsedBytes) / statfsBlock // df shows the rest as used
	out.Bavail = uint64(s.FreeBytes) / statfsBlock
	out.Files = s.Files + s.FreeFiles
	out.Ffree = s.FreeFiles
	out.NameLen = vfs.MaxPosixNameBytes
	return fuse.OK
}

// enoent is for what was removed while it was open.
const enoent = fuse.Status(syscall.ENOENT)
