// Package rights decides who may do what through the object doors: S3 grants and
// policies give, POSIX modes that somebody chose deny. The model is docs/security.md,
// "Who may do what", whose tables a test holds against this code. The POSIX doors go
// by modes and ACLs alone (package perm).
//
// Each operation evaluates in the snapshot or the transaction in which it acts: a
// Judge is for one subject in one of them.
//
//	subject ─ Judge (one snapshot) ─┬ policies of bucket and user     policies.go policycache.go package iam
//	                                ├ requests the requester pays for payer.go
//	                                ├ grants   ownership, S3 grants   judge.go acl.go
//	                                └ denials  modes that were chosen denials.go chosen.go
//	what the operations ask: object.go remove.go upload.go followlink.go
//
// A policy is read and compiled once for each version of its text; the entry of a
// bucket reports whether there is any. It goes by keys: of what a symbolic link leads
// to, both its own and that of the link count.
//
// Whether somebody chose a mode stands in the inode; the entry of a directory repeats
// what its mode denies at all, so that walking a key and listing read no inodes of
// directories that deny nothing.
//
// A context without a subject is the program's own, which may do everything.
package rights
