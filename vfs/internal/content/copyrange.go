package content

import (
	"ogw/cluster"
	"ogw/vfs/internal/extents"
	"ogw/vfs/internal/record"
)

// RangeCopy is a copy of some bytes of a file to another, or within one.
type RangeCopy struct {
	From record.Ino
	Range
	To int64 // offset
	// New is the ID of a content that the file may get, and Own of one more that it
	// needs if the copy is within it.
	New, Own record.ContentID
}

// CopyRange is one transaction of a copy by reference. If the room that it needs
// holds too many extents, it clears some and returns how far, with copied 0.
func (ch *Change) CopyRange(t cluster.Txn, dst *record.Inode, c RangeCopy) (copied, cleared int64, err error) {
	src, off, from := dst, c.To, c.From
	if from != dst.Ino {
		if src, err = record.GetInode(t, from); err != nil {
			return 0, 0, err
		}
	}
	n := min(c.Len, src.Size-c.Off)
	if n <= 0 {
		return 0, 0, nil
	}
	if src == dst && dst.Content == 0 { // a hole, over a hole
		ch.Changed(dst)
		dst.Size = max(dst.Size, off+n)
		return n, 0, nil
	}
	if src == dst {
		// Its bytes become those of a content that both ranges refer to.
		if err := ch.Share(t, dst); err != nil {
			return 0, 0, err
		}
		source := *dst
		if err := hold(t, dst.Content, c.Own); err != nil { // keeps it while dst moves on
			return 0, 0, err
		}
		if err := ch.MakeWritable(t, dst, c.Own); err != nil {
			return 0, 0, err
		}
		src = &source
	} else if err := ch.MakeWritable(t, dst, c.New); err != nil {
		return 0, 0, err
	}
	oldSize := dst.Size
	done, _, err := ch.cut(t, dst, off, off+n, Bounds{Extents: max(ch.s.cutLimit()/2, 1)})
	if err != nil {
		return 0, 0, err
	}
	dst.CRC = 0
	dst.Set(record.FlagCRC, false)
	ch.Changed(dst)
	// The hold on what the source was ends if nothing of it is left in dst.
	release := func() error {
		if src == dst || from != dst.Ino || src.Content == 0 {
			return nil
		}
		return ch.releaseLater(t, dst.Content, src.Content)
	}
	if done < off+n {
		return 0, done, release()
	}
	list, err := ch.Refer(t, src, dst.Content, Range{c.Off, n}, off)
	if err != nil {
		return 0, 0, err
	}
	if err := PutExtents(t, dst.Content, list); err != nil {
		return 0, 0, err
	}
	used, err := newUsage(t, ch.s.lookLimit(1)).ofAll(list, src.Used)
	if err != nil {
		return 0, 0, err
	}
	dst.Used += used
	dst.Set(record.FlagRefs, dst.Has(record.FlagRefs) || extents.HasRefs(list))
	dst.Size = max(oldSize, off+n)
	return n, 0, release()
}

// Clear removes extents from from on, at most what one transaction may
// hold, and returns up to where it came.
func (ch *Change) Clear(t cluster.Txn, n *record.Inode, from, to int64, id record.ContentID) (int64, error) {
	if n.Content == 0 || from >= n.Size {
		return to, nil
	}
	list, _, err := extents.Load(t, n.Content, from, to, 1)
	if err != nil {
		return from, err
	}
	if len(list) == 0 {
		return to, nil
	}
	if err := ch.MakeWritable(t, n, id); err != nil {
		return from, err
	}
	done, _, err := ch.cut(t, n, from, to, Bounds{Extents: ch.s.cutLimit()})
	if err != nil {
		return from, err
	}
	n.CRC = 0
	n.Set(record.FlagCRC, false)
	ch.Changed(n)
	return done, nil
}
