package iofs

import (
	"context"
	"io/fs"
	"path"
	"slices"
	"strings"

	"ogw/vfs"
)

// FS is a read-only view of one directory and all below it. Symbolic links
// are followed; none leads out of the view.
type FS struct {
	ctx  context.Context // io/fs has no contexts: this one ends all calls
	vfs  *vfs.FS
	cred *vfs.Cred
	root vfs.Ino
}

var (
	_ fs.ReadDirFS  = (*FS)(nil)
	_ fs.StatFS     = (*FS)(nil)
	_ fs.ReadLinkFS = (*FS)(nil)
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
		return nil, PathError("open", dir, err)
	}
	return &FS{ctx, v, cred, a.Ino}, nil
}

func (f *FS) resolve(op, name string, follow bool) (vfs.Attr, error) {
	if !fs.ValidPath(name) {
		return vfs.Attr{}, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	a, err := f.vfs.ResolveBelow(f.ctx, f.cred, f.root, name, follow)
	return a, PathError(op, name, err)
}

// Open implements fs.FS. A directory is a fs.ReadDirFile, a regular file
// also an io.Seeker and an io.ReaderAt.
func (f *FS) Open(name string) (fs.File, error) {
	a, err := f.resolve("open", name, true)
	if err != nil {
		return nil, err
	}
	if a.IsDir() {
		return &dir{fs: f, name: name, attr: a}, nil
	}
	h, err := f.vfs.Open(f.ctx, f.cred, a.Ino, vfs.OpenRead)
	if err != nil {
		return nil, PathError("open", name, err)
	}
	return &file{ctx: f.ctx, f: h, name: name}, nil
}

// Stat implements fs.StatFS.
func (f *FS) Stat(name string) (fs.FileInfo, error) { return f.info("stat", name, true) }

// Lstat implements fs.ReadLinkFS.
func (f *FS) Lstat(name string) (fs.FileInfo, error) { return f.info("lstat", name, false) }

func (f *FS) info(op, name string, follow bool) (fs.FileInfo, error) {
	a, err := f.resolve(op, name, follow)
	if err != nil {
		return nil, err
	}
	return NewInfo(path.Base(name), a), nil
}

// ReadLink implements fs.ReadLinkFS.
func (f *FS) ReadLink(name string) (string, error) {
	a, err := f.resolve("readlink", name, false)
	if err != nil {
		return "", err
	}
	target, err := f.vfs.Readlink(f.ctx, a.Ino)
	return target, PathError("readlink", name, err)
}

// ReadDir implements fs.ReadDirFS: all entries, sorted by name.
func (f *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	a, err := f.resolve("readdir", name, true)
	if err != nil {
		return nil, err
	}
	var list []fs.DirEntry
	err = f.vfs.ReadDir(f.ctx, f.cred, a.Ino, vfs.ReadDirOptions{Attrs: true}, func(e vfs.DirEntry) error {
		list = append(list, NewEntry(e, f.lookIn(a.Ino)))
		return nil
	})
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, PathError("readdir", name, err)
}

// lookIn returns a function that looks up names in a directory.
func (f *FS) lookIn(dir vfs.Ino) func(name string) (vfs.Attr, error) {
	return func(name string) (vfs.Attr, error) { return f.vfs.Lookup(f.ctx, f.cred, dir, name) }
}
