package iofs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"

	"ogw/cluster"
	"ogw/vfs"
)

// file is an open regular file. Like os.File, it is safe for concurrent
// ReadAt, not for concurrent Read and Seek.
type file struct {
	ctx  context.Context
	f    *vfs.File
	name string
	off  int64
}

var (
	_ io.ReaderAt = (*file)(nil)
	_ io.Seeker   = (*file)(nil)
)

func (f *file) Stat() (fs.FileInfo, error) {
	a, err := f.f.Attr(f.ctx)
	if err != nil {
		return nil, PathError("stat", f.name, err)
	}
	return NewInfo(path.Base(f.name), a), nil
}

func (f *file) Read(p []byte) (int, error) {
	n, err := f.ReadAt(p, f.off)
	f.off += int64(n)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

func (f *file) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, &fs.PathError{Op: "read", Path: f.name, Err: fs.ErrInvalid}
	}
	if len(p) == 0 {
		return 0, nil
	}
	n, err := f.f.ReadAt(f.ctx, p, off)
	if err != nil && !errors.Is(err, io.EOF) {
		err = PathError("read", f.name, err)
	}
	return n, err
}

func (f *file) Seek(off int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		off += f.off
	case io.SeekEnd:
		a, err := f.f.Attr(f.ctx)
		if err != nil {
			return 0, PathError("seek", f.name, err)
		}
		off += a.Size
	default:
		off = -1
	}
	if off < 0 {
		return 0, &fs.PathError{Op: "seek", Path: f.name, Err: fs.ErrInvalid}
	}
	f.off = off
	return off, nil
}

func (f *file) Close() error { return PathError("close", f.name, f.f.Close(f.ctx)) }

// dir is an open directory.
type dir struct {
	fs    *FS
	name  string
	attr  vfs.Attr
	after string
}

var _ fs.ReadDirFile = (*dir)(nil)

func (d *dir) Stat() (fs.FileInfo, error) {
	a, err := d.fs.vfs.GetAttr(d.fs.ctx, d.attr.Ino)
	if err != nil {
		return nil, PathError("stat", d.name, err)
	}
	return NewInfo(path.Base(d.name), a), nil
}

func (d *dir) Read([]byte) (int, error) { return 0, PathError("read", d.name, vfs.ErrIsDir) }
func (d *dir) Close() error             { return nil }

// ReadDir implements fs.ReadDirFile, in the order of the store.
func (d *dir) ReadDir(n int) (list []fs.DirEntry, err error) {
	o := vfs.ReadDirOptions{After: d.after, Attrs: true, Few: max(n, 0)}
	err = d.fs.vfs.ReadDir(d.fs.ctx, d.fs.cred, d.attr.Ino, o, func(e vfs.DirEntry) error {
		d.after = e.Pos
		list = append(list, NewEntry(e, d.fs.lookIn(d.attr.Ino)))
		if len(list) == n {
			return cluster.ErrStop
		}
		return nil
	})
	if err == nil && n > 0 && len(list) == 0 {
		return nil, io.EOF
	}
	return list, PathError("readdir", d.name, err)
}
