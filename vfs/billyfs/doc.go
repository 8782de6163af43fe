// Package billyfs shows a directory of a vfs.FS as a billy.Filesystem, the
// interface of go-git and its relatives.
//
//	billy.Filesystem, Change ── FS ── chroot helper ── files ── vfs.FS
//
// Names are those of the POSIX doors; missing parents are made, as billy
// wants it. Errors are those of package os. Locks are shared with the other
// doors (flock).
package billyfs
