package fusemount

import (
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// observed tells Options.Observe of every request. It stands around rawFS
// only if somebody listens. Forgets come in thousands, cannot fail and take
// no time: they are left out.
type observed struct {
	fuse.RawFileSystem
	observe func(operation string, took time.Duration, errno syscall.Errno)
}

func observe(fs fuse.RawFileSystem, opt Options) fuse.RawFileSystem {
	if opt.Observe == nil {
		return fs
	}
	return &observed{fs, opt.Observe}
}

func (o *observed) done(operation string, start time.Time, s fuse.Status) fuse.Status {
	o.observe(operation, time.Since(start), syscall.Errno(s))
	return s
}

func (o *observed) Lookup(c <-chan struct{}, in *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	start := time.Now()
	return o.done("lookup", start, o.RawFileSystem.Lookup(c, in, name, out))
}

func (o *observed) GetAttr(c <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	start := time.Now()
	return o.done("getattr", start, o.RawFileSystem.GetAttr(c, in, out))
}

func (o *observed) SetAttr(c <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	start := time.Now()
	return o.done("setattr", start, o.RawFileSystem.SetAttr(c, in, out))
}

func (o *observed) Mknod(c <-chan struct{}, in *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	start := time.Now()
	return o.done("mknod", start, o.RawFileSystem.Mknod(c, in, name, out))
}

func (o *observed) Mkdir(c <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	start := time.Now()
	return o.done("mkdir", start, o.RawFileSystem.Mkdir(c, in, name, out))
}

func (o *observed) Unlink(c <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	start := time.Now()
	return o.done("unlink", start, o.RawFileSystem.Unlink(c, in, name))
}

func (o *observed) Rmdir(c <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	start := time.Now()
	return o.done("rmdir", start, o.RawFileSystem.Rmdir(c, in, name))
}

func (o *observed) Rename(c <-chan struct{}, in *fuse.RenameIn, oldName string, newName string) fuse.Status {
	start := time.Now()
	return o.done("rename", start, o.RawFileSystem.Rename(c, in, oldName, newName))
}

func (o *observed) Link(c <-chan struct{}, in *fuse.LinkIn, filename string, out *fuse.EntryOut) fuse.Status {
	start := time.Now()
	return o.done("link", start, o.RawFileSystem.Link(c, in, filename, out))
}

func (o *observed) Symlink(c <-chan struct{}, in *fuse.InHeader, pointedTo string, linkName string, out *fuse.EntryOut) fuse.Status {
	start := time.Now()
	return o.done("symlink", start, o.RawFileSystem.Symlink(c, in, pointedTo, linkName, out))
}

func (o *observed) Readlink(c <-chan struct{}, in *fuse.InHeader) ([]byte, fuse.Status) {
	start := time.Now()
	n, s := o.RawFileSystem.Readlink(c, in)
	return n, o.done("readlink", start, s)
}

func (o *observed) Access(c <-chan struct{}, in *fuse.AccessIn) fuse.Status {
	start := time.Now()
	return o.done("access", start, o.RawFileSystem.Access(c, in))
}

func (o *observed) GetXAttr(c <-chan struct{}, in *fuse.InHeader, attr string, dest []byte) (uint32, fuse.Status) {
	start := time.Now()
	n, s := o.RawFileSystem.GetXAttr(c, in, attr, dest)
	return n, o.done("getxattr", start, s)
}

func (o *observed) ListXAttr(c <-chan struct{}, in *fuse.InHeader, dest []byte) (uint32, fuse.Status) {
	start := time.Now()
	n, s := o.RawFileSystem.ListXAttr(c, in, dest)
	return n, o.done("listxattr", start, s)
}

func (o *observed) SetXAttr(c <-chan struct{}, in *fuse.SetXAttrIn, attr string, data []byte) fuse.Status {
	start := time.Now()
	return o.done("setxattr", start, o.RawFileSystem.SetXAttr(c, in, attr, data))
}

func (o *observed) RemoveXAttr(c <-chan struct{}, in *fuse.InHeader, attr string) fuse.Status {
	start := time.Now()
	return o.done("removexattr", start, o.RawFileSystem.RemoveXAttr(c, in, attr))
}

func (o *observed) Create(c <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	start := time.Now()
	return o.done("create", start, o.RawFileSystem.Create(c, in, name, out))
}

func (o *observed) Tmpfile(c <-chan struct{}, in *fuse.CreateIn, out *fuse.CreateOut) fuse.Status {
	start := time.Now()
	return o.done("tmpfile", start, o.RawFileSystem.Tmpfile(c, in, out))
}

func (o *observed) Open(c <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	start := time.Now()
	return o.done("open", start, o.RawFileSystem.Open(c, in, out))
}

func (o *observed) Read(c <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	start := time.Now()
	n, s := o.RawFileSystem.Read(c, in, buf)
	return n, o.done("read", start, s)
}

func (o *observed) Lseek(c <-chan struct{}, in *fuse.LseekIn, out *fuse.LseekOut) fuse.Status {
	start := time.Now()
	return o.done("lseek", start, o.RawFileSystem.Lseek(c, in, out))
}

func (o *observed) GetLk(c <-chan struct{}, in *fuse.LkIn, out *fuse.LkOut) fuse.Status {
	start := time.Now()
	return o.done("getlk", start, o.RawFileSystem.GetLk(c, in, out))
}

func (o *observed) SetLk(c <-chan struct{}, in *fuse.LkIn) fuse.Status {
	start := time.Now()
	return o.done("setlk", start, o.RawFileSystem.SetLk(c, in))
}

func (o *observed) SetLkw(c <-chan struct{}, in *fuse.LkIn) fuse.Status {
	start := time.Now()
	return o.done("setlkw", start, o.RawFileSystem.SetLkw(c, in))
}

func (o *observed) Release(c <-chan struct{}, in *fuse.ReleaseIn) {
	start := time.Now()
	o.RawFileSystem.Release(c, in)
	o.done("release", start, fuse.OK)
}

func (o *observed) Write(c <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	start := time.Now()
	n, s := o.RawFileSystem.Write(c, in, data)
	return n, o.done("write", start, s)
}

func (o *observed) Writev(c <-chan struct{}, in *fuse.WriteIn, data [][]byte) (uint32, fuse.Status) {
	start := time.Now()
	n, s := o.RawFileSystem.Writev(c, in, data)
	if s == fuse.ENOSYS {
		return n, s // Write is called instead
	}
	return n, o.done("write", start, s)
}

func (o *observed) CopyFileRange(c <-chan struct{}, in *fuse.CopyFileRangeIn) (uint32, fuse.Status) {
	start := time.Now()
	n, s := o.RawFileSystem.CopyFileRange(c, in)
	return n, o.done("copyfilerange", start, s)
}

func (o *observed) Ioctl(c <-chan struct{}, in *fuse.IoctlIn, inbuf []byte, output *fuse.IoctlOut, outbuf []byte) fuse.Status {
	start := time.Now()
	return o.done("ioctl", start, o.RawFileSystem.Ioctl(c, in, inbuf, output, outbuf))
}

func (o *observed) Flush(c <-chan struct{}, in *fuse.FlushIn) fuse.Status {
	start := time.Now()
	return o.done("flush", start, o.RawFileSystem.Flush(c, in))
}

func (o *observed) Fsync(c <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	start := time.Now()
	return o.done("fsync", start, o.RawFileSystem.Fsync(c, in))
}

func (o *observed) Fallocate(c <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	start := time.Now()
	return o.done("fallocate", start, o.RawFileSystem.Fallocate(c, in))
}

func (o *observed) OpenDir(c <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	start := time.Now()
	return o.done("opendir", start, o.RawFileSystem.OpenDir(c, in, out))
}

func (o *observed) ReadDir(c <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	start := time.Now()
	return o.done("readdir", start, o.RawFileSystem.ReadDir(c, in, out))
}

func (o *observed) ReadDirPlus(c <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	start := time.Now()
	return o.done("readdirplus", start, o.RawFileSystem.ReadDirPlus(c, in, out))
}

func (o *observed) ReleaseDir(in *fuse.ReleaseIn) {
	start := time.Now()
	o.RawFileSystem.ReleaseDir(in)
	o.done("releasedir", start, fuse.OK)
}

func (o *observed) FsyncDir(c <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	start := time.Now()
	return o.done("fsyncdir", start, o.RawFileSystem.FsyncDir(c, in))
}

func (o *observed) StatFs(c <-chan struct{}, in *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	start := time.Now()
	return o.done("statfs", start, o.RawFileSystem.StatFs(c, in, out))
}

func (o *observed) Statx(c <-chan struct{}, in *fuse.StatxIn, out *fuse.StatxOut) fuse.Status {
	start := time.Now()
	return o.done("statx", start, o.RawFileSystem.Statx(c, in, out))
}
