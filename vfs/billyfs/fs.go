package billyfs

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"time"

	"ogw/vfs"
	"ogw/vfs/iofs"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/helper/chroot"
)

// FS is a read-write view of one directory and all below it. Neither ".."
// nor a symbolic link leads out of it.
type FS struct {
	billy.Filesystem // the chroot helper over files: it checks names, and is no border
	files            *files
}

var (
	_ billy.Change  = (*FS)(nil)
	_ billy.Capable = (*FS)(nil)
)

// New returns a view of the directory at dir (a POSIX path from the root of
// the namespace, "/" for all) with the rights of cred. The view stays with
// the directory when that is renamed. The calls end when ctx does.
func New(ctx context.Context, v *vfs.FS, cred *vfs.Cred, dir string) (*FS, error) {
	a, err := v.Resolve(ctx, cred, dir, true)
	if err == nil && !a.IsDir() {
		err = vfs.ErrNotDir
	}
	if err != nil {
		return nil, iofs.PathError("open", dir, err)
	}
	return view(&files{ctx: ctx, vfs: v, cred: cred, ino: a.Ino, client: fmt.Sprintf("billy:%016x", rand.Uint64()), base: "/"}), nil
}

func view(f *files) *FS { return &FS{chroot.New(f, f.base), f} }

// Chroot implements billy.Chroot. The directory need not exist: what is written makes it.
func (f *FS) Chroot(dir string) (billy.Filesystem, error) {
	if _, err := f.Filesystem.Chroot(dir); err != nil { // a name that leads out
		return nil, err
	}
	sub := *f.files
	sub.above, sub.dir = f.files, path.Clean("/"+dir)
	sub.base = path.Join(f.files.base, sub.dir)
	return view(&sub), nil
}

// Capabilities implements billy.Capable.
func (f *FS) Capabilities() billy.Capability { return billy.AllCapabilities }

// Chmod implements billy.Change.
func (f *FS) Chmod(name string, mode os.FileMode) error {
	return f.change("chmod", name, true, vfs.SetAttr{Mode: ptr(iofs.Permissions(mode))})
}

// Chown implements billy.Change; -1 leaves an owner as it is.
func (f *FS) Chown(name string, uid, gid int) error {
	return f.change("chown", name, true, owners(uid, gid))
}

// Lchown implements billy.Change; -1 leaves an owner as it is.
func (f *FS) Lchown(name string, uid, gid int) error {
	return f.change("lchown", name, false, owners(uid, gid))
}

// Chtimes implements billy.Change.
func (f *FS) Chtimes(name string, atime, mtime time.Time) error {
	return f.change("chtimes", name, true, vfs.SetAttr{Atime: ptr(vfs.TimeOf(atime)), Mtime: ptr(vfs.TimeOf(mtime))})
}

func (f *FS) change(op, name string, follow bool, set vfs.SetAttr) error {
	full := path.Join(f.Root(), path.Clean("/"+name))
	a, err := f.files.resolve(full, follow)
	if err == nil {
		_, err = f.files.vfs.SetAttr(f.files.ctx, f.files.cred, a.Ino, set)
	}
	return iofs.PathError(op, name, err)
}

func owners(uid, gid int) (set vfs.SetAttr) {
	if uid >= 0 {
		set.UID = ptr(uint32(uid))
	}
	if gid >= 0 {
		set.GID = ptr(uint32(gid))
	}
	return set
}

func ptr[T any](v T) *T { return &v }
