package fusemount

import (
	"context"
	"time"

	"ogw/vfs"
	"ogw/vfs/lock"
)

// namespace is what the requests and mounts of this door need of a vfs.FS, by what
// for.
type namespace struct {
	attributes
	xattrs
	entries
	makers
	opener
	state
	pathFinder
}

func namespaceOf(fs *vfs.FS) namespace { return namespace{fs, fs, fs, fs, fs, fs, fs} }

type attributes interface {
	GetAttr(ctx context.Context, ino vfs.Ino) (vfs.Attr, error)
	ReadMoment() vfs.ReadMoment
	KeepAttr(a *vfs.Attr, since vfs.ReadMoment) time.Duration
	Forget()
	SetAttr(ctx context.Context, cred *vfs.Cred, ino vfs.Ino, set vfs.SetAttr) (vfs.Attr, error)
	SetFlags(ctx context.Context, cred *vfs.Cred, ino vfs.Ino, flags vfs.FileFlags) error
	Access(ctx context.Context, cred *vfs.Cred, ino vfs.Ino, mask uint32) error
	Accessed(ctx context.Context, ino vfs.Ino) (moved bool)
}

type xattrs interface {
	GetXattr(ctx context.Context, cred *vfs.Cred, ino vfs.Ino, name string) (value []byte, err error)
	SetXattr(ctx context.Context, cred *vfs.Cred, ino vfs.Ino, a vfs.Xattr, flags vfs.XattrFlags) error
	ListXattr(ctx context.Context, cred *vfs.Cred, ino vfs.Ino) (names []string, err error)
	RemoveXattr(ctx context.Context, cred *vfs.Cred, ino vfs.Ino, name string) error
}

// pathFinder knows where an inode is in the tree.
type pathFinder interface {
	KeyOf(ctx context.Context, ino vfs.Ino) (key string, err error)
}

type entries interface {
	Lookup(ctx context.Context, cred *vfs.Cred, dir vfs.Ino, name string) (vfs.Attr, error)
	OpenDirStream(dir vfs.Ino) *vfs.DirStream
	Changes(ino vfs.Ino) (begun, ended uint64)
	Readlink(ctx context.Context, ino vfs.Ino) (target string, err error)
	Link(ctx context.Context, cred *vfs.Cred, ino, dir vfs.Ino, name string) (vfs.Attr, error)
	Rename(ctx context.Context, cred *vfs.Cred, from, to vfs.EntryName, flags vfs.RenameFlags) error
	Unlink(ctx context.Context, cred *vfs.Cred, dir vfs.Ino, name string) error
	Rmdir(ctx context.Context, cred *vfs.Cred, dir vfs.Ino, name string) error
}

// makers make inodes.
type makers interface {
	Create(ctx context.Context, cred *vfs.Cred, dir vfs.Ino, name string, o vfs.CreateOptions) (a vfs.Attr, f *vfs.File, created bool, err error)
	OpenTemp(ctx context.Context, cred *vfs.Cred, dir vfs.Ino, mode uint32, flags vfs.OpenFlags) (a vfs.Attr, f *vfs.File, err error)
	Mkdir(ctx context.Context, cred *vfs.Cred, dir vfs.Ino, name string, mode uint32) (vfs.Attr, error)
	Mknod(ctx context.Context, cred *vfs.Cred, dir vfs.Ino, name string, o vfs.NodeOptions) (vfs.Attr, error)
	Symlink(ctx context.Context, cred *vfs.Cred, dir vfs.Ino, name, target string) (vfs.Attr, error)
}

// opener is where open files come from, and what is stored of them.
type opener interface {
	rewriter
	SyncInode(ctx context.Context, ino vfs.Ino) error
	StoreClosed(ctx context.Context) error
	NewHolder() *vfs.Holder
	Orphans(ctx context.Context, fn func(vfs.Ino) error) error
}

// rewriter is what it takes to make writes again.
type rewriter interface {
	Open(ctx context.Context, cred *vfs.Cred, ino vfs.Ino, flags vfs.OpenFlags) (*vfs.File, error)
	Flush(ctx context.Context, ino vfs.Ino) error
}

// state is that of the whole.
type state interface {
	StatFS(ctx context.Context) (vfs.StatFS, error)
	Exclusive() bool
	KeptBefore(seq uint64)
	Locks() lock.Locks
	Watch(inv vfs.Invalidator) (cancel func())
}
