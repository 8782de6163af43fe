package nfsserver

import (
	"context"

	"ogw/vfs"
	"ogw/vfs/lock"
)

// namespace is what the procedures need of a vfs.FS, by what for. Exports and open
// files state theirs where they are (tree, opener).
type namespace struct {
	attributes
	entries
	directories
	state
}

func namespaceOf(fs *vfs.FS) namespace { return namespace{fs, fs, fs, fs} }

type attributes interface {
	GetAttr(ctx context.Context, ino vfs.Ino) (vfs.Attr, error)
	TryAttr(ino vfs.Ino) (a vfs.Attr, ok bool)
	SetAttr(ctx context.Context, cred *vfs.Cred, ino vfs.Ino, set vfs.SetAttr) (vfs.Attr, error)
	Access(ctx context.Context, cred *vfs.Cred, ino vfs.Ino, mask uint32) error
	Accessed(ctx context.Context, ino vfs.Ino) (moved bool)
}

// entries are what is read of directories and symbolic links.
type entries interface {
	Lookup(ctx context.Context, cred *vfs.Cred, dir vfs.Ino, name string) (vfs.Attr, error)
	ReadDir(ctx context.Context, cred *vfs.Cred, dir vfs.Ino, o vfs.ReadDirOptions, fn func(vfs.DirEntry) error) error
	Readlink(ctx context.Context, ino vfs.Ino) (target string, err error)
	Changes(ino vfs.Ino) (begun, ended uint64)
}

// directories are what is changed of them.
type directories interface {
	Create(ctx context.Context, cred *vfs.Cred, dir vfs.Ino, name string, o vfs.CreateOptions) (a vfs.Attr, f *vfs.File, created bool, err error)
	Mkdir(ctx context.Context, cred *vfs.Cred, dir vfs.Ino, name string, mode uint32) (vfs.Attr, error)
	Symlink(ctx context.Context, cred *vfs.Cred, dir vfs.Ino, name, target string) (vfs.Attr, error)
	Mknod(ctx context.Context, cred *vfs.Cred, dir vfs.Ino, name string, o vfs.NodeOptions) (vfs.Attr, error)
	Link(ctx context.Context, cred *vfs.Cred, ino, dir vfs.Ino, name string) (vfs.Attr, error)
	Rename(ctx context.Context, cred *vfs.Cred, from, to vfs.EntryName, flags vfs.RenameFlags) error
	Unlink(ctx context.Context, cred *vfs.Cred, dir vfs.Ino, name string) error
	Rmdir(ctx context.Context, cred *vfs.Cred, dir vfs.Ino, name string) error
}

// state is that of the whole.
type state interface {
	StatFS(ctx context.Context) (vfs.StatFS, error)
	SyncInode(ctx context.Context, ino vfs.Ino) error
	Losses() uint64
	Exclusive() bool
	Locks() lock.Locks
}
