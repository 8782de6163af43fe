package fusemount

import (
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// observed informs Options.Observe and Options.Done of every request. It stands
// around rawFS only if somebody listens. Forgets come in thousands, cannot fail
// and take no time: they are left out.
type observed struct {
	fuse.RawFileSystem
	raw *rawFS
}

func observe(raw *rawFS) fuse.RawFileSystem {
	if raw.opt.Observe == nil && raw.opt.Done == nil {
		return raw
	}
	return &observed{raw, raw}
}

// done reports a request about the node of h, or with a name about the entry
// in it.
func (o *observed) done(operation string, start time.Time, h *fuse.InHeader, name string, s fuse.Status) fuse.Status {
	return o.ended(operation, start, h, extra{name: name}, s)
}

// extra is what some requests have beside their node.
type extra struct {
	name, toName string
	toDir        uint64 // node; 0: none
	detail       string
	rights       bool // what succeeds changes rights
}

func (o *observed) ended(operation string, start time.Time, h *fuse.InHeader, x extra, s fuse.Status) fuse.Status {
	opt := &o.raw.opt
	if opt.Observe != nil {
		opt.Observe(operation, time.Since(start), syscall.Errno(s))
	}
	if opt.Done != nil {
		o.tell(operation, h, &x, s)
	}
	return s
}

func (o *observed) Lookup(c <-chan struct{}, in *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	start := time.Now()
	return o.done("lookup", start, in, name, o.RawFileSystem.Lookup(c, in, name, out))
}

func (o *observed) GetAttr(c <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	start := time.Now()
	return o.done("getattr", start, &in.InHeader, "", o.RawFileSystem.GetAttr(c, in, out))
}

func (o *observed) SetAttr(c <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	start := time.Now()
	s := o.RawFileSystem.SetAttr(c, in, out)
	const rights = fuse.FATTR_MODE | fuse.FATTR_UID | fuse.FATTR_GID
	ofBucket := s == fuse.OK && in.Valid&rights != 0 && o.isBucket(in.NodeId, &out.Attr)
	return o.ended("setattr", start, &in.InHeader, extra{rights: ofBucket}, s)
}

func (o *observed) Mknod(c <-chan struct{}, in *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	start := time.Now()
	return o.done("mknod", start, &in.InHeader, name, o.RawFileSystem.Mknod(c, in, name, out))
}

func (o *observed) Mkdir(c <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	start := time.Now()
	return o.done("mkdir", start, &in.InHeader, name, o.RawFileSystem.Mkdir(c, in, name, out))
}

func (o *observed) Unlink(c <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	start := time.Now()
	return o.done("unlink", start, in, name, o.RawFileSystem.Unlink(c, in, name))
}

func (o *observed) Rmdir(c <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	start := time.Now()
	return o.done("rmdir", start, in, name, o.RawFileSystem.Rmdir(c, in, name))
}

func (o *observed) Rename(c <-chan struct{}, in *fuse.RenameIn, oldName string, newName string) fuse.Status {
	start := time.Now()
	s := o.RawFileSystem.Rename(c, in, oldName, newName)
	return o.ended("rename", start, &in.InHeader, extra{name: oldName, toDir: in.Newdir, toName: newName}, s)
}

func (o *observed) Link(c <-chan struct{}, in *fuse.LinkIn, filename string, out *fuse.EntryOut) fuse.Status {
	start := time.Now()
	return o.done("link", start, &in.InHeader, filename, o.RawFileSystem.Link(c, in, filename, out))
}

func (o *observed) Symlink(c <-chan struct{}, in *fuse.InHeader, pointedTo string, linkName string, out *fuse.EntryOut) fuse.Status {
	start := time.Now()
	return o.done("symlink", start, in, linkName, o.RawFileSystem.Symlink(c, in, pointedTo, linkName, out))
}

func (o *observed) Readlink(c <-chan struct{}, in *fuse.InHeader) ([]byte, fuse.Status) {
	start := time.Now()
	n, s := o.RawFileSystem.Readlink(c, in)
	return n, o.done("readlink", start, in, "", s)
}

func (o *observed) Access(c <-chan struct{}, in *fuse.AccessIn) fuse.Status {
	start := time.Now()
	return o.done("access", start, &in.InHeader, "", o.RawFileSystem.Access(c, in))
}

func (o *observed) GetXAttr(c <-chan struct{}, in *fuse.InHeader, attr string, dest []byte) (uint32, fuse.Status) {
	start := time.Now()
	n, s := o.RawFileSystem.GetXAttr(c, in, attr, dest)
	return n, o.done("getxattr", start, in, "", s)
}

func (o *observed) ListXAttr(c <-chan struct{}, in *fuse.InHeader, dest []byte) (uint32, fuse.Status) {
	start := time.Now()
	n, s := o.RawFileSystem.ListXAttr(c, in, dest)
	return n, o.done("listxattr", start, in, "", s)
}

func (o *observed) SetXAttr(c <-chan struct{}, in *fuse.SetXAttrIn, attr string, data []byte) fuse.Status {
	start := time.Now()
	s := o.RawFileSystem.SetXAttr(c, in, attr, data)
	return o.ended("setxattr", start, &in.InHeader, extra{detail: attr, rights: isACL(attr)}, s)
}

func (o *observed) RemoveXAttr(c <-chan struct{}, in *fuse.InHeader, attr string) fuse.Status {
	start := time.Now()
	s := o.RawFileSystem.RemoveXAttr(c, in, attr)
	return o.ended("removexattr", start, in, extra{detail: attr, rights: isACL(attr)}, s)
}

func (o *observed) Create(c <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	start := time.Now()
	return o.done("create", start, &in.InHeader, name, o.RawFileSystem.Create(c, in, name, out))
}

func (o *observed) Tmpfile(c <-chan struct{}, in *fuse.CreateIn, out *fuse.CreateOut) fuse.Status {
	start := time.Now()
	return o.done("tmpfile", start, &in.InHeader, "", o.RawFileSystem.Tmpfile(c, in, out))
}

func (o *observed) Open(c <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	start := time.Now()
	return o.done("open", start, &in.InHeader, "", o.RawFileSystem.Open(c, in, out))
}

func (o *observed) Read(c <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	start := time.Now()
	n, s := o.RawFileSystem.Read(c, in, buf)
	return n, o.done("read", start, &in.InHeader, "", s)
}

func (o *observed) Lseek(c <-chan struct{}, in *fuse.LseekIn, out *fuse.LseekOut) fuse.Status {
	start := time.Now()
	return o.done("lseek", start, &in.InHeader, "", o.RawFileSystem.Lseek(c, in, out))
}

func (o *observed) GetLk(c <-chan struct{}, in *fuse.LkIn, out *fuse.LkOut) fuse.Status {
	start := time.Now()
	return o.done("getlk", start, &in.InHeader, "", o.RawFileSystem.GetLk(c, in, out))
}

func (o *observed) SetLk(c <-chan struct{}, in *fuse.LkIn) fuse.Status {
	start := time.Now()
	return o.done("setlk", start, &in.InHeader, "", o.RawFileSystem.SetLk(c, in))
}

func (o *observed) SetLkw(c <-chan struct{}, in *fuse.LkIn) fuse.Status {
	start := time.Now()
	return o.done("setlkw", start, &in.InHeader, "", o.RawFileSystem.SetLkw(c, in))
}

func (o *observed) Release(c <-chan struct{}, in *fuse.ReleaseIn) {
	start := time.Now()
	o.RawFileSystem.Release(c, in)
	o.done("release", start, &in.InHeader, "", fuse.OK)
}

func (o *observed) Write(c <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	start := time.Now()
	n, s := o.RawFileSystem.Write(c, in, data)
	return n, o.done("write", start, &in.InHeader, "", s)
}

func (o *observed) Writev(c <-chan struct{}, in *fuse.WriteIn, data [][]byte) (uint32, fuse.Status) {
	start := time.Now()
	n, s := o.RawFileSystem.Writev(c, in, data)
	if s == fuse.ENOSYS {
		return n, s // Write is called instead
	}
	return n, o.done("write", start, &in.InHeader, "", s)
}

func (o *observed) CopyFileRange(c <-chan struct{}, in *fuse.CopyFileRangeIn) (uint32, fuse.Status) {
	start := time.Now()
	n, s := o.RawFileSystem.CopyFileRange(c, in)
	return n, o.done("copyfilerange", start, &in.InHeader, "", s)
}

func (o *observed) Ioctl(c <-chan struct{}, in *fuse.IoctlIn, inbuf []byte, output *fuse.IoctlOut, outbuf []byte) fuse.Status {
	start := time.Now()
	s := o.RawFileSystem.Ioctl(c, in, inbuf, output, outbuf)
	return o.ended("ioctl", start, &in.InHeader, setsFlags(in.Cmd, inbuf), s)
}

func (o *observed) Flush(c <-chan struct{}, in *fuse.FlushIn) fuse.Status {
	start := time.Now()
	return o.done("flush", start, &in.InHeader, "", o.RawFileSystem.Flush(c, in))
}

func (o *observed) Fsync(c <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	start := time.Now()
	return o.done("fsync", start, &in.InHeader, "", o.RawFileSystem.Fsync(c, in))
}

func (o *observed) Fallocate(c <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	start := time.Now()
	return o.done("fallocate", start, &in.InHeader, "", o.RawFileSystem.Fallocate(c, in))
}

func (o *observed) OpenDir(c <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	start := time.Now()
	s := o.RawFileSystem.OpenDir(c, in, out)
	if s == fuse.ENOSYS { // it is opened all the same
		o.done("opendir", start, &in.InHeader, "", fuse.OK)
		return s
	}
	return o.done("opendir", start, &in.InHeader, "", s)
}

func (o *observed) ReadDir(c <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	start := time.Now()
	return o.done("readdir", start, &in.InHeader, "", o.RawFileSystem.ReadDir(c, in, out))
}

func (o *observed) ReadDirPlus(c <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	start := time.Now()
	return o.done("readdirplus", start, &in.InHeader, "", o.RawFileSystem.ReadDirPlus(c, in, out))
}

func (o *observed) ReleaseDir(in *fuse.ReleaseIn) {
	start := time.Now()
	o.RawFileSystem.ReleaseDir(in)
	o.done("releasedir", start, &in.InHeader, "", fuse.OK)
}

func (o *observed) FsyncDir(c <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	start := time.Now()
	return o.done("fsyncdir", start, &in.InHeader, "", o.RawFileSystem.FsyncDir(c, in))
}

func (o *observed) StatFs(c <-chan struct{}, in *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	start := time.Now()
	return o.done("statfs", start, in, "", o.RawFileSystem.StatFs(c, in, out))
}

func (o *observed) Statx(c <-chan struct{}, in *fuse.StatxIn, out *fuse.StatxOut) fuse.Status {
	start := time.Now()
	return o.done("statx", start, &in.InHeader, "", o.RawFileSystem.Statx(c, in, out))
}
