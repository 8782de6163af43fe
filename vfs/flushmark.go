package vfs

import "ogw/vfs/internal/record"

// flushMark is what an inode is like that a flush leaves. Where others change the file, one of the same
// version may be theirs, who were faster.
type flushMark struct {
	version uint64
	size    int64
	mtime   Time
	ctimeNS int64
}

func markOf(n *record.Inode) *flushMark {
	return &flushMark{n.Version, n.Size, n.Mtime, n.CtimeNS}
}

// left reports whether a is how the flush left the inode.
func (m *flushMark) left(a *Attr) bool {
	return a.Version == m.version && a.Size == m.size && a.Mtime == m.mtime && a.CtimeNS == m.ctimeNS
}
