package iofs

import (
	"io/fs"
	"time"

	"ogw/vfs"
)

// Info is a fs.FileInfo and a fs.DirEntry over vfs.Attr, which Sys returns.
type Info struct {
	name string
	attr vfs.Attr
}

// NewInfo describes a file called name.
func NewInfo(name string, a vfs.Attr) Info { return Info{name, a} }

func (i Info) Name() string               { return i.name }
func (i Info) Size() int64                { return i.attr.Size }
func (i Info) Mode() fs.FileMode          { return FileMode(i.attr.Mode) }
func (i Info) Type() fs.FileMode          { return FileMode(i.attr.Mode).Type() }
func (i Info) ModTime() time.Time         { return i.attr.Mtime.Time() }
func (i Info) IsDir() bool                { return i.attr.IsDir() }
func (i Info) Sys() any                   { return &i.attr }
func (i Info) Info() (fs.FileInfo, error) { return i, nil }
func (i Info) String() string             { return fs.FormatFileInfo(i) }

// NewEntry describes an entry of a listing. Of one that has no attributes, look gets them
// when they are asked for, or the error for there being none.
func NewEntry(e vfs.DirEntry, look func(name string) (vfs.Attr, error)) fs.DirEntry {
	if e.Attr != nil {
		return NewInfo(e.Name, *e.Attr)
	}
	return bareEntry{e.Name, e.Mode, look}
}

// bareEntry is an entry without attributes.
type bareEntry struct {
	name string
	mode uint32
	look func(name string) (vfs.Attr, error)
}

func (e bareEntry) Name() string      { return e.name }
func (e bareEntry) Type() fs.FileMode { return FileMode(e.mode).Type() }
func (e bareEntry) IsDir() bool       { return e.Type().IsDir() }
func (e bareEntry) String() string    { return fs.FormatDirEntry(e) }

func (e bareEntry) Info() (fs.FileInfo, error) {
	a, err := e.look(e.name)
	if err != nil {
		return nil, PathError("lstat", e.name, err)
	}
	return NewInfo(e.name, a), nil
}

// FileMode converts a mode of package vfs, which is Linux's.
func FileMode(mode uint32) fs.FileMode {
	m := fs.FileMode(mode & 0o777)
	switch mode & vfs.ModeTypeMask {
	case vfs.ModeDirectory:
		m |= fs.ModeDir
	case vfs.ModeSymlink:
		m |= fs.ModeSymlink
	case vfs.ModeFIFO:
		m |= fs.ModeNamedPipe
	case vfs.ModeSocket:
		m |= fs.ModeSocket
	case vfs.ModeBlock:
		m |= fs.ModeDevice
	case vfs.ModeChar:
		m |= fs.ModeDevice | fs.ModeCharDevice
	}
	for _, b := range setBits {
		if mode&b.vfs != 0 {
			m |= b.fs
		}
	}
	return m
}

// Permissions is the inverse of FileMode for what chmod sets.
func Permissions(m fs.FileMode) uint32 {
	mode := uint32(m.Perm())
	for _, b := range setBits {
		if m&b.fs != 0 {
			mode |= b.vfs
		}
	}
	return mode
}

var setBits = [...]struct {
	vfs uint32
	fs  fs.FileMode
}{
	{vfs.ModeSetUID, fs.ModeSetuid},
	{vfs.ModeSetGID, fs.ModeSetgid},
	{vfs.ModeSticky, fs.ModeSticky},
}
