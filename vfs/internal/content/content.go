package content

import (
	"context"
	"errors"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/extents"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/ids"
	"ogw/vfs/internal/record"
)

// Written is a content that is written, and that no inode holds yet.
type Written struct {
	ID      record.ContentID // 0: empty
	Size    int64            // bytes
	Used    int64            // bytes that are not holes
	CRC     uint64           // CRC64NVME of the whole
	NoCRC   bool             // CRC is unknown
	Extents []record.Extent
	// Staged reports whether the extents are stored already (more than fit one
	// transaction) and stand under a staging record.
	Staged bool

	use *ids.Use // of its numbers, until it is published or discarded
}

// OneInline reports what record.FlagOneInline means.
func (c *Written) OneInline() bool {
	return !c.Staged && extents.OneInline(c.Extents, c.Used)
}

// Set makes c the content of n: extents, size, used, crc, version,
// clearing the object part's sums, and dropping the old content. POSIX
// writers of the old content become stale. The caller stores n.
func (ch *Change) Set(t cluster.Txn, n *record.Inode, c *Written) error {
	if err := ch.Drop(t, n); err != nil {
		return err
	}
	if err := ch.store(t, c); err != nil {
		return err
	}
	n.Content, n.Size, n.Used, n.CRC = c.ID, c.Size, c.Used, c.CRC
	n.Set(record.FlagCRC, !c.NoCRC)
	n.Set(record.FlagRefs, extents.HasRefs(c.Extents))
	n.Set(record.FlagOneInline, c.OneInline())
	n.Epoch++
	n.Stored = nil // they were written to what is replaced
	ch.Changed(n)
	return nil
}

// Changed moves n's version and forgets what described the old bytes.
func (ch *Change) Changed(n *record.Inode) {
	n.Version++
	n.ForgetSums()
	ch.op.InodeChanged(n.Ino, true)
}

// store writes c's extents, or ends their staging.
func (ch *Change) store(t cluster.Txn, c *Written) error {
	if !c.Staged {
		return PutExtents(t, c.ID, c.Extents)
	}
	b, err := t.Get(record.ContentKey(c.ID))
	if err != nil {
		return err
	}
	if b == nil {
		return fmt.Errorf("content %d waited too long to be published: %w", c.ID, fserr.ErrStale)
	}
	ch.published = append(ch.published, c.ID)
	return t.Delete(record.ContentKey(c.ID))
}

// PutExtents stores extents of content id. What they refer to is held
// already (Refer).
func PutExtents(t cluster.Txn, id record.ContentID, list []record.Extent) error {
	for i := range list {
		if err := t.Set(record.ExtentKey(id, list[i].Off), list[i].Encode()); err != nil {
			return err
		}
	}
	return nil
}

// Stage stores the extents of a content that has too many for the
// transaction that publishes it. Until then they stand under a staging
// record, by which the collector finds what a crash leaves.
func (s *Store) Stage(ctx context.Context, c *Written) error {
	limit := extents.PerTxn(s.KV)
	if c.Staged || len(c.Extents) <= limit {
		return nil
	}
	s.Staged.Add(c.ID) // until published or discarded
	// The transaction that publishes makes these durable too.
	ctx = cluster.Relaxed(ctx)
	staging := record.Content{Staging: true, MadeNS: s.Now().UnixNano()}.Encode()
	for i := 0; i < len(c.Extents); i += limit / 2 {
		batch := c.Extents[i:min(i+limit/2, len(c.Extents))]
		err := s.Update(ctx, func(t cluster.Txn, ch *Change) error {
			if err := t.Set(record.ContentKey(c.ID), staging); err != nil {
				return err
			}
			return PutExtents(t, c.ID, batch)
		})
		if err != nil {
			return err
		}
		c.Staged = true // also after a part of it: discard must know
	}
	return nil
}

// dropContentExtents is how many inline extents are deleted at once instead
// of through the queue, if every reader has them all in its first page.
const dropContentExtents = 8

// Drop removes n's content: at once if it is inline and unshared,
// else through the queue, or only n's hold on it if others refer to it.
// Size, version and the rest are the caller's, who moves the version after it.
func (ch *Change) Drop(t cluster.Txn, n *record.Inode) error {
	c, used := n.Content, n.Used
	shared, refs, oneInline := n.Has(record.FlagShared), n.Has(record.FlagRefs), n.Has(record.FlagOneInline)
	n.Content, n.Used = 0, 0
	n.Set(record.FlagShared|record.FlagRefs|record.FlagOneInline, false)
	if c == 0 {
		return nil
	}
	if shared {
		referred, err := record.AnyKey(t, record.RefPrefix(c))
		if err != nil {
			return err
		}
		if referred {
			return t.Set(record.ContentKey(c), record.Content{Held: false, Version: ch.s.lastVersion(n)}.Encode())
		}
		if err := t.Delete(record.ContentKey(c)); err != nil {
			return err
		}
	}
	if oneInline {
		return t.Delete(record.ExtentKey(c, 0))
	}
	// Of what POSIX wrote most is one inline extent too: to look it up and see
	// that it holds all bytes costs less than to scan for others. What is used says
	// less where references go over holes.
	v, err := t.Get(record.ExtentKey(c, 0))
	if err != nil {
		return err
	}
	if v != nil && !refs {
		if e, err := record.DecodeExtent(0, v); err == nil && e.Kind == record.ExtentInline && e.Len == used {
			return t.Delete(record.ExtentKey(c, 0))
		}
	}
	return ch.remove(t, c, ch.s.lastVersion(n))
}

// lastVersion is what is noted of a content that n loses: its version, where others may
// be reading.
func (s *Store) lastVersion(n *record.Inode) uint64 {
	if s.Session.Alone() {
		return 0
	}
	return n.Version
}

// Remove deletes a content that nobody holds, and no inode held.
func (ch *Change) Remove(t cluster.Txn, c record.ContentID) error { return ch.remove(t, c, 0) }

// remove deletes a content that nobody holds any more; version: record.Content.Version.
func (ch *Change) remove(t cluster.Txn, c record.ContentID, version uint64) error {
	list, more, err := extents.LoadPage(t, c, 0, record.MaxFileBytes, extents.PageBounds{Extents: dropContentExtents, InlineBytes: extents.ReadPageInline})
	if err != nil {
		return err
	}
	if more || !extents.AllInline(list) {
		return ch.Enqueue(t, record.QueueEntry{Kind: record.QueueContent, Content: c, Version: version})
	}
	for i := range list {
		if err := t.Delete(record.ExtentKey(c, list[i].Off)); err != nil {
			return err
		}
	}
	return nil
}

// ReleaseRef ends user's hold on source, which goes if nobody else has one.
func (ch *Change) ReleaseRef(t cluster.Txn, source, user record.ContentID) error {
	b, err := t.Get(record.RefKey(source, user))
	if err != nil || b == nil {
		return err
	}
	if err := t.Delete(record.RefKey(source, user)); err != nil {
		return err
	}
	v, err := t.Get(record.ContentKey(source))
	if err != nil || v == nil {
		return err
	}
	r, err := record.DecodeContent(v)
	if err != nil || r.Staging || r.Held {
		return err
	}
	referred, err := record.AnyKey(t, record.RefPrefix(source))
	if err != nil || referred {
		return err
	}
	if err := t.Delete(record.ContentKey(source)); err != nil {
		return err
	}
	return ch.remove(t, source, r.Version)
}

// Clone returns a content that shares n's bytes by reference (inline
// bytes are copied) and makes n's shared, storing n if that changed it. id
// comes from s.IDs.take. The clone must be published in this transaction.
func (ch *Change) Clone(t cluster.Txn, n *record.Inode, id record.ContentID) (*Written, error) {
	list, err := ch.Refer(t, n, id, Range{Len: n.Size}, 0)
	if err != nil {
		return nil, err
	}
	c := &Written{ID: id, Size: n.Size, Used: n.Used, CRC: n.CRC, NoCRC: !n.Has(record.FlagCRC), Extents: list}
	if len(list) == 0 {
		c.ID, c.Used = 0, 0
	}
	return c, nil
}

// maxRefRuns bounds the extents that one reference to a range may become.
const maxRefRuns = 1 << 16

var ErrFragmented = errors.New("content is too fragmented to be shared")

// Range is Len bytes from offset Off on.
type Range struct{ Off, Len int64 }

// Refer returns extents for content user, the first byte at offset at,
// that name the bytes of a range of n's content. Unless these are
// inline and few, which copies them, n's content becomes shared (n is stored
// then) and user holds it, or the contents that it refers to itself: a
// reference never leads to another.
func (ch *Change) Refer(t cluster.Txn, n *record.Inode, user record.ContentID, from Range, at int64) ([]record.Extent, error) {
	off, end := from.Off, min(from.Off+from.Len, n.Size)
	if n.Content == 0 || off >= end {
		return nil, nil
	}
	if end-off <= int64(ch.s.InlineBytes) {
		list, more, err := extents.Load(t, n.Content, off, end, dropContentExtents)
		if err != nil {
			return nil, err
		}
		if !more && extents.AllInline(list) {
			for i := range list {
				list[i] = list[i].Clip(off, end)
				list[i].Off += at - off
			}
			return list, nil
		}
	}
	runs := []record.Extent{{Off: off, Len: end - off, Kind: record.ExtentRef, Src: n.Content, SrcOff: off}}
	if n.Has(record.FlagRefs) {
		list, more, err := extents.Load(t, n.Content, off, end, ch.s.refExtentLimit())
		if err != nil {
			return nil, err
		}
		if more {
			return nil, fmt.Errorf("%w: %w", fserr.ErrTooLarge, ErrFragmented)
		}
		runs = refRuns(n.Content, list, off, end)
	}
	if len(runs) > ch.s.refRunLimit() {
		return nil, fmt.Errorf("%w: %w", fserr.ErrTooLarge, ErrFragmented)
	}
	held := make(map[record.ContentID]bool)
	for i := range runs {
		e := &runs[i]
		e.Off += at - off
		if held[e.Src] {
			continue
		}
		held[e.Src] = true
		if e.Src == n.Content {
			if err := ch.Share(t, n); err != nil {
				return nil, err
			}
		}
		if err := hold(t, e.Src, user); err != nil {
			return nil, err
		}
	}
	return runs, nil
}

// refRuns turns extents of content c into as few references as name the same
// bytes within [from, to): one for each run of c's own, holes included, and
// one for each run of references to one source.
func refRuns(c record.ContentID, list []record.Extent, from, to int64) (runs []record.Extent) {
	for i := range list {
		e := list[i].Clip(from, to)
		if e.Kind != record.ExtentRef {
			e = record.Extent{Off: e.Off, Len: e.Len, Kind: record.ExtentRef, Src: c, SrcOff: e.Off}
		}
		if k := len(runs) - 1; k >= 0 && runs[k].Src == e.Src && e.Off-runs[k].Off == e.SrcOff-runs[k].SrcOff &&
			(e.Src == c || runs[k].End() == e.Off) {
			runs[k].Len = e.End() - runs[k].Off
			continue
		}
		runs = append(runs, e)
	}
	return runs
}

// Share marks n's content as shared, and stores n.
func (ch *Change) Share(t cluster.Txn, n *record.Inode) error {
	if n.Has(record.FlagShared) {
		return nil
	}
	n.Set(record.FlagShared, true)
	if err := t.Set(record.ContentKey(n.Content), record.Content{Held: true}.Encode()); err != nil {
		return err
	}
	return record.PutInode(t, n)
}

// MakeWritable gives n a content that may change in place: if its own is
// shared, content id, which refers to it. The caller stores n.
func (ch *Change) MakeWritable(t cluster.Txn, n *record.Inode, id record.ContentID) error {
	if n.Content == 0 {
		n.Content = id
		return nil
	}
	if !n.Has(record.FlagShared) {
		return nil
	}
	referred, err := record.AnyKey(t, record.RefPrefix(n.Content))
	if err != nil {
		return err
	}
	if !referred {
		n.Set(record.FlagShared, false)
		return t.Delete(record.ContentKey(n.Content))
	}
	c, err := ch.Clone(t, n, id)
	if errors.Is(err, ErrFragmented) {
		return ErrDetach
	}
	if err != nil {
		return err
	}
	if err := ch.Drop(t, n); err != nil {
		return err
	}
	if err := PutExtents(t, id, c.Extents); err != nil {
		return err
	}
	n.Content, n.Used = id, c.Used
	n.Set(record.FlagRefs, extents.HasRefs(c.Extents))
	return nil
}

// limitedRefRuns is how many references one transaction makes in an
// engine with limits.
const limitedRefRuns = 16

func (s *Store) refRunLimit() int {
	if extents.PerTxn(s.KV) == extents.LimitedTxn {
		return limitedRefRuns
	}
	return maxRefRuns
}

// refExtentLimit is how many extents are looked at to make references of them: an
// engine with limits counts each.
func (s *Store) refExtentLimit() int {
	if extents.PerTxn(s.KV) == extents.LimitedTxn {
		return 2 * limitedRefRuns
	}
	return maxRefRuns
}

// ErrDetach: the content is shared, and of more references than this
// transaction may make.
var ErrDetach = errors.New("content must be detached first")
