// Package iofs shows a directory of a vfs.FS as an io/fs.FS, for all that
// reads through that interface: templates, http.FileServerFS, fs.WalkDir.
//
//	fs.FS, ReadDirFS, StatFS, ReadLinkFS ── FS ── vfs.FS
//
// Names are those of the POSIX doors. Errors are *fs.PathError around a
// syscall.Errno, as package os returns them, so that errors.Is with
// fs.ErrNotExist, fs.ErrPermission and fs.ErrExist works.
package iofs
