// Package users holds the users of a namespace: whom the object doors let in, by
// name and by access key.
//
//	doors ─→ Registry ─┬─ cache: users by access key     cache.go
//	                   ├─ names, uids, access keys → ID  index.go
//	                   └─ ID → record (internal/record), secrets sealed (package seal)
//	                                 │
//	                               Store: the namespace's transactions
//
// A user is an ID that is never given twice. Its record stays when the user is
// removed, and with it the uid: files, buckets and grants may still name them.
// Grants hold IDs; owners of inodes are uids.
//
// A secret that cannot be opened is kept as it is, and lets nobody in
// (vfs.ErrSealed). Errors are those of package vfs: ErrNoSuchUser, ErrUserExists,
// ErrUIDTaken, ErrInvalid, ErrSealed, ErrCorrupt.
//
// cache.mu is a leaf: no transaction runs while it is held. A read that began
// before a change is not kept (cache.changes).
package users
