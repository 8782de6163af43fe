// Package perm decides as POSIX does who may do what to an inode: by the mode,
// the POSIX ACL and the file flags. Errors are ErrAccess and ErrPerm.
//
//	Cred       the caller (cred.go)
//	Check      modes and ACLs (perm.go)
//	FileFlags  what chattr(1) forbids to everybody (fileflags.go)
package perm
