package billyfs

import (
	"context"
	"errors"
	"os"
	"path"
	"slices"
	"strings"

	"ogw/vfs"
	"ogw/vfs/iofs"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/util"
)

// parentMode is the mode of directories that are made because a file needs
// them, before the umask.
const parentMode = 0o777

// files is the view below base, with which all names begin: they are clean. Links are
// followed within the view, whose root an absolute one begins at.
type files struct {
	ctx  context.Context // billy has no contexts: this one ends all calls
	vfs  *vfs.FS
	cred *vfs.Cred
	base string

	// The root: an inode, or a directory of another view, which may be made again.
	ino   vfs.Ino
	above *files
	dir   string

	client string // of the locks, at all gateways
}

var (
	_ billy.Basic    = (*files)(nil)
	_ billy.Dir      = (*files)(nil)
	_ billy.Symlink  = (*files)(nil)
	_ billy.TempFile = (*files)(nil)
)

func (f *files) resolve(name string, follow bool) (vfs.Attr, error) {
	return f.find(f.within(name), follow)
}

// within returns a name as it is below the root.
func (f *files) within(name string) string {
	return path.Clean("/" + strings.TrimPrefix(path.Clean("/"+name), f.base))
}

func (f *files) find(name string, follow bool) (vfs.Attr, error) {
	root := f.ino
	if f.above != nil {
		a, err := f.above.find(f.dir, true)
		if err != nil {
			return vfs.Attr{}, err
		}
		root = a.Ino
	}
	return f.vfs.ResolveBelow(f.ctx, f.cred, root, name, follow)
}

// parent returns the directory that holds name, and the last component; with
// mk it makes what is missing.
func (f *files) parent(name string, mk bool) (vfs.Ino, string, error) {
	dir, base := path.Split(f.within(name))
	if base == "" {
		return 0, "", vfs.ErrIsDir
	}
	a, err := f.find(dir, true)
	if errors.Is(err, vfs.ErrNotExist) && mk {
		a, err = f.mkdirAll(dir, parentMode)
	}
	if err == nil && !a.IsDir() {
		err = vfs.ErrNotDir
	}
	return a.Ino, base, err
}

// mkdirAll makes a directory below the root, and those above it, the root too.
func (f *files) mkdirAll(name string, mode uint32) (vfs.Attr, error) {
	at := "/"
	a, err := f.find(at, true)
	if f.above != nil && errors.Is(err, vfs.ErrNotExist) {
		a, err = f.above.mkdirAll(f.dir, parentMode)
	}
	for c := range strings.SplitSeq(name, "/") {
		if c == "" || err != nil {
			continue
		}
		at = path.Join(at, c)
		dir := a.Ino
		if a, err = f.find(at, true); errors.Is(err, vfs.ErrNotExist) {
			a, err = f.vfs.Mkdir(f.ctx, f.cred, dir, c, mode)
			if errors.Is(err, vfs.ErrExist) { // somebody else was faster
				a, err = f.find(at, true)
			}
		}
		if err == nil && !a.IsDir() {
			err = vfs.ErrNotDir
		}
	}
	return a, err
}

// Create implements billy.Basic.
func (f *files) Create(name string) (billy.File, error) {
	return f.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
}

// Open implements billy.Basic.
func (f *files) Open(name string) (billy.File, error) { return f.OpenFile(name, os.O_RDONLY, 0) }

// OpenFile implements billy.Basic.
func (f *files) OpenFile(name string, flag int, perm os.FileMode) (billy.File, error) {
	h, err := f.open(name, flag, perm)
	if err != nil {
		return nil, iofs.PathError("open", name, err)
	}
	return &file{fs: f, f: h, name: name, append: flag&os.O_APPEND != 0, write: flag&(os.O_WRONLY|os.O_RDWR) != 0}, nil
}

func (f *files) open(name string, flag int, perm os.FileMode) (*vfs.File, error) {
	flags := openFlags(flag)
	if flag&os.O_CREATE == 0 {
		a, err := f.resolve(name, true)
		if err != nil {
			return nil, err
		}
		return f.vfs.Open(f.ctx, f.cred, a.Ino, flags)
	}
	dir, base, err := f.parent(name, true)
	if err != nil {
		return nil, err
	}
	_, h, _, err := f.vfs.Create(f.ctx, f.cred, dir, base, vfs.CreateOptions{
		Mode: iofs.Permissions(perm), Flags: flags, Exclusive: flag&os.O_EXCL != 0,
	})
	return h, err
}

func openFlags(flag int) vfs.OpenFlags {
	var flags vfs.OpenFlags
	switch flag & (os.O_RDONLY | os.O_WRONLY | os.O_RDWR) {
	case os.O_WRONLY:
		flags = vfs.OpenWrite
	case os.O_RDWR:
		flags = vfs.OpenRead | vfs.OpenWrite
	default:
		flags = vfs.OpenRead
	}
	if flag&os.O_TRUNC != 0 {
		flags |= vfs.OpenTrunc
	}
	switch {
	case flag&os.O_APPEND != 0:
		flags |= vfs.OpenAppend
	case flags&vfs.OpenWrite != 0:
		flags |= vfs.OpenAnywhere
	}
	if flag&os.O_SYNC != 0 {
		flags |= vfs.OpenSync
	}
	return flags
}

// Stat implements billy.Basic.
func (f *files) Stat(name string) (os.FileInfo, error) { return f.info("stat", name, true) }

// Lstat implements billy.Symlink.
func (f *files) Lstat(name string) (os.FileInfo, error) { return f.info("lstat", name, false) }

func (f *files) info(op, name string, follow bool) (os.FileInfo, error) {
	a, err := f.resolve(name, follow)
	if err != nil {
		return nil, iofs.PathError(op, name, err)
	}
	return iofs.NewInfo(path.Base(path.Clean("/"+name)), a), nil
}

// Rename implements billy.Basic.
func (f *files) Rename(from, to string) error {
	err := func() error {
		source, name, err := f.parent(from, false)
		if err != nil {
			return err
		}
		target, newName, err := f.parent(to, true)
		if err != nil {
			return err
		}
		return f.vfs.Rename(f.ctx, f.cred, vfs.EntryName{Dir: source, Name: name}, vfs.EntryName{Dir: target, Name: newName}, 0)
	}()
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: iofs.Errno(err)}
	}
	return nil
}

// Remove implements billy.Basic.
func (f *files) Remove(name string) error {
	dir, base, err := f.parent(name, false)
	if err == nil {
		err = f.vfs.Unlink(f.ctx, f.cred, dir, base)
		if errors.Is(err, vfs.ErrIsDir) {
			err = f.vfs.Rmdir(f.ctx, f.cred, dir, base)
		}
	}
	return iofs.PathError("remove", name, err)
}

// Join implements billy.Basic.
func (f *files) Join(elem ...string) string { return path.Join(elem...) }

// TempFile implements billy.TempFile.
func (f *files) TempFile(dir, prefix string) (billy.File, error) {
	return util.TempFile(f, dir, prefix)
}

// ReadDir implements billy.Dir: all entries, sorted by name.
func (f *files) ReadDir(name string) ([]os.FileInfo, error) {
	list := []os.FileInfo{}
	a, err := f.resolve(name, true)
	if err == nil {
		err = f.vfs.ReadDir(f.ctx, f.cred, a.Ino, vfs.ReadDirOptions{Attrs: true}, func(e vfs.DirEntry) error {
			i, err := iofs.NewEntry(e, func(name string) (vfs.Attr, error) { return f.vfs.Lookup(f.ctx, f.cred, a.Ino, name) }).Info()
			if errors.Is(err, os.ErrNotExist) {
				return nil // it vanished concurrently
			}
			list = append(list, i)
			return err
		})
	}
	if err != nil {
		return nil, iofs.PathError("readdir", name, err)
	}
	slices.SortFunc(list, func(a, b os.FileInfo) int { return strings.Compare(a.Name(), b.Name()) })
	return list, nil
}

// MkdirAll implements billy.Dir.
func (f *files) MkdirAll(name string, perm os.FileMode) error {
	_, err := f.mkdirAll(f.within(name), iofs.Permissions(perm))
	return iofs.PathError("mkdir", name, err)
}

// Symlink implements billy.Symlink. The helper puts base before an absolute target, which
// is stored as it is in the view.
func (f *files) Symlink(target, link string) error {
	dir, name, err := f.parent(link, true)
	if err == nil {
		stored := target
		if path.IsAbs(target) {
			stored = f.within(target)
		}
		_, err = f.vfs.Symlink(f.ctx, f.cred, dir, name, stored)
	}
	if err != nil {
		return &os.LinkError{Op: "symlink", Old: target, New: link, Err: iofs.Errno(err)}
	}
	return nil
}

// Readlink implements billy.Symlink.
func (f *files) Readlink(name string) (string, error) {
	a, err := f.resolve(name, false)
	var target string
	if err == nil {
		target, err = f.vfs.Readlink(f.ctx, a.Ino)
	}
	if path.IsAbs(target) {
		target = path.Join(f.base, target)
	}
	return target, iofs.PathError("readlink", name, err)
}

// Chmod implements billy.Chmod, which the chroot helper looks for.
func (f *files) Chmod(name string, mode os.FileMode) error {
	a, err := f.resolve(name, true)
	if err == nil {
		_, err = f.vfs.SetAttr(f.ctx, f.cred, a.Ino, vfs.SetAttr{Mode: ptr(iofs.Permissions(mode))})
	}
	return iofs.PathError("chmod", name, err)
}
