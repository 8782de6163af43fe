package vfs

import (
	"ogw/vfs/internal/sharedlocks"
	"ogw/vfs/lock"
)

// Locks are the advisory locks of files, named by inode number. The doors share them, and so
// do the gateways that use the store beside one another.
func (fs *FS) Locks() lock.Locks { return fs.locks }

// openLocks makes Locks: of this process, where no other one uses the store, and else of
// all, in the store.
func (fs *FS) openLocks() {
	if fs.session.Alone() {
		fs.locks = lock.New(0)
		return
	}
	fs.shared = sharedlocks.New(sharedlocks.Config{KV: fs.kv, Gateway: fs.session.ID(), Rules: fs.session.Rules, Doubt: fs.session.Doubt, Log: fs.log})
	fs.locks = fs.shared
}
