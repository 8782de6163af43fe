package content

import (
	"errors"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/extents"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

// Truncate changes n's size; what was behind a smaller one is gone. The
// caller flushes n before the transaction, runs it with Fit, and stores
// n, with its times. It clears the object part's sums and moves version. id is an
// unused number.
func (ch *Change) Truncate(t cluster.Txn, n *record.Inode, size int64, id record.ContentID) error {
	if size < 0 {
		return fserr.ErrInvalid
	}
	if size == 0 {
		n.Object.ForgetForm()
	}
	if size == n.Size {
		return nil
	}
	old := n.Size
	switch {
	case size == 0:
		if err := ch.Drop(t, n); err != nil {
			return err
		}
	case size < old:
		if err := ch.cutTail(t, n, size, id); err != nil {
			return err
		}
	}
	n.Size = size
	n.CRC = 0
	n.Set(record.FlagCRC, size == 0)
	ch.Changed(n)
	return nil
}

// cutTail removes what lies behind size; a trimError if that is more than a transaction may
// hold. A shared content stays: n gets a fresh one that refers to it up to size, and
// would keep all of what it names if nobody else had it.
func (ch *Change) cutTail(t cluster.Txn, n *record.Inode, size int64, id record.ContentID) error {
	if n.Content == 0 {
		return nil
	}
	if !n.Has(record.FlagShared) {
		limit := ch.s.cutLimit()
		list, more, err := extents.Load(t, n.Content, size, n.Size, limit)
		if err != nil {
			return err
		}
		if more {
			return &trimError{size}
		}
		_, _, err = ch.cut(t, n, size, n.Size, Bounds{Extents: len(list)})
		return err
	}
	kept, err := ch.Refer(t, n, id, Range{Len: size}, 0)
	if errors.Is(err, ErrFragmented) {
		return ErrDetach
	}
	if err != nil {
		return err
	}
	used, err := newUsage(t, ch.s.lookLimit(1)).ofAll(kept, n.Used)
	if err != nil {
		return err
	}
	if err := ch.Drop(t, n); err != nil {
		return err
	}
	if len(kept) == 0 {
		return nil
	}
	n.Content, n.Used = id, used
	n.Set(record.FlagRefs, extents.HasRefs(kept))
	return PutExtents(t, id, kept)
}

// trimError: more lies behind a size than this transaction may cut.
type trimError struct{ size int64 }

func (e *trimError) Error() string { return fmt.Sprintf("content must be trimmed to %d first", e.size) }
