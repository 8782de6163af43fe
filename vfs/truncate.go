package vfs

import (
	"errors"

	"ogw/cluster"
	"ogw/vfs/internal/extents"
	"ogw/vfs/internal/record"
)

// truncate changes n's size; what was behind a smaller one is gone. The
// caller settles before the transaction, runs it with updateFile, and stores
// n, with its times. It
// clears the object part's sums and moves version. id comes from
// fs.ids.take.
func (o *op) truncate(t cluster.Txn, n *record.Inode, size int64, id ContentID) error {
	if size < 0 {
		return ErrInvalid
	}
	if size == n.Size {
		return nil
	}
	old := n.Size
	switch {
	case size == 0:
		if err := o.dropContent(t, n); err != nil {
			return err
		}
	case size < old:
		if err := o.cutTail(t, n, size, id); err != nil {
			return err
		}
	}
	n.Size = size
	n.CRC = 0
	n.Set(record.FlagCRC, size == 0)
	o.contentChanged(n)
	return nil
}

// cutTail removes what lies behind size. If that is more than a transaction
// may hold, or if the content is shared, n gets a fresh content that refers
// to the old one up to size.
func (o *op) cutTail(t cluster.Txn, n *record.Inode, size int64, id ContentID) error {
	if n.Content == 0 {
		return nil
	}
	if !n.Has(record.FlagShared) {
		limit := o.fs.cutLimit()
		list, more, err := extents.Load(t, n.Content, size, n.Size, limit)
		if err != nil {
			return err
		}
		if !more {
			_, _, err := o.cutRange(t, n, size, n.Size, len(list), nil)
			return err
		}
	}
	kept, err := o.refExtents(t, n, id, 0, size, 0)
	if errors.Is(err, errTooFragmented) {
		if n.Has(record.FlagShared) {
			return errDetach
		}
		return &trimError{size}
	}
	if err != nil {
		return err
	}
	if err := o.dropContent(t, n); err != nil {
		return err
	}
	if len(kept) == 0 {
		return nil
	}
	n.Content = id
	for i := range kept {
		n.Used += kept[i].Len
	}
	n.Set(record.FlagRefs, extents.HasRefs(kept))
	return putExtents(t, id, kept)
}
