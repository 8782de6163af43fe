package vfs

import "ogw/vfs/internal/session"

// Holder keeps inodes for a door whose client names them by number for as
// long as it likes, and says when it forgets them: a kernel with its FUSE
// lookups. An inode of any kind that loses its last link while it is held
// becomes an orphan, as open files do, and goes with the last hold.
type Holder = session.Holder

// HoldMark is a moment before an inode was looked up.
type HoldMark = session.HoldMark

// NewHolder returns a Holder, to be closed.
func (fs *FS) NewHolder() *Holder { return fs.session.Open.NewHolder() }
