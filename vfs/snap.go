package vfs

import (
	"context"
	"sync/atomic"
	"time"

	"ogw/cluster"
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

// read takes what r shows of ino; with its extents, if readable. It may run again.
func (s *fileSnap) read(ctx context.Context, r cluster.Reader, store *content.Store, ino Ino, readable bool) (err error) {
	_ = s.reader.Close() // of an earlier run
	s.reader = nil
	if s.inode, err = record.GetInode(r, ino); err != nil {
		return err
	}
	if !s.inode.IsRegular() {
		return ErrInvalid
	}
	if readable {
		s.reader, err = store.Open(context.WithoutCancel(ctx), r, s.inode)
	}
	return err
}
