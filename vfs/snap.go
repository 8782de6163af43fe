package vfs

import (
	"sync/atomic"
	"time"

	"ogw/vfs/internal/content"
	"ogw/vfs/internal/record"
)

// fileSnap is a snapshot of what is stored. That which a flush leaves is the inode
// alone: a writer needs no more, and extents are loaded for the next reader.
type fileSnap struct {
	gen    uint64
	at     time.Time // under openFile.mu, as inode is, which is replaced by one of its version
	inode  *record.Inode
	reader *content.Reader // nil: not loaded
	refs   atomic.Int32
}

func (s *fileSnap) release() {
	if s != nil && s.refs.Add(-1) == 0 {
		_ = s.reader.Close()
	}
}
