package content

import (
	"errors"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

// replaced reports whether ino no longer has content, or that has another version.
func replaced(r cluster.Reader, ino record.Ino, content record.ContentID, version uint64) (bool, error) {
	n, err := record.GetInode(r, ino)
	if err != nil {
		return false, err
	}
	return n.Content != content || n.Version != version, nil
}

// checkUnchanged returns an error if the content changed in place since c was opened, as
// by another process. One that its inode no longer has stays, while c pins it, as it was
// when the inode lost it.
func (c *Reader) checkUnchanged(r cluster.Reader) error {
	n, err := record.GetInode(r, c.ino)
	gone := errors.Is(err, fserr.ErrStale)
	switch {
	case err != nil && !gone:
		return err
	case gone || n.Content != c.content:
		if c.dropped.Load() {
			return nil
		}
		version, err := droppedIn(r, c.content)
		if err != nil {
			return err
		}
		if version != c.version {
			return c.stale()
		}
		c.dropped.Store(true)
	case n.Version != c.version:
		return c.stale()
	}
	return nil
}

// queueLook is how many of the last entries of the queue are looked through for one.
const queueLook = 8192

// droppedIn returns the version in which its inode lost a content that c pins
// (record.Content.Version), 0 if that is not known.
func droppedIn(r cluster.Reader, c record.ContentID) (version uint64, err error) {
	v, err := r.Get(record.ContentKey(c))
	if err != nil {
		return 0, err
	}
	if v != nil {
		shared, err := record.DecodeContent(v)
		return shared.Version, err
	}
	from, to := record.Table(record.TabQueue)
	err = r.Scan(from, to, cluster.ScanOptions{Limit: queueLook, Reverse: true}, func(k, v []byte) error {
		e, err := record.DecodeQueueEntry(k, v)
		if err != nil || e.Kind != record.QueueContent || e.Content != c {
			return err
		}
		version = e.Version
		return cluster.ErrStop
	})
	return version, err
}

// checkCurrent returns an error if what c reads was replaced.
func (c *Reader) checkCurrent(r cluster.Reader) error {
	was, err := replaced(r, c.ino, c.content, c.version)
	if err == nil && was {
		err = c.stale()
	}
	return err
}
