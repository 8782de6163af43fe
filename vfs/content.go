package vfs

import (
	"context"
	"errors"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/extents"
	"ogw/vfs/internal/record"
)

// content is a written content that no inode holds yet.
type content struct {
	id      ContentID // 0: empty
	size    int64
	used    int64
	crc     uint64 // CRC64NVME of the whole
	noCRC   bool   // crc is unknown
	extents []record.Extent
	// staged tells that the extents are stored already (more than fit one
	// transaction) and stand under a staging record.
	staged bool
}

// oneInline reports what record.FlagOneInline says of an inode.
func (c *content) oneInline() bool {
	return !c.staged && extents.OneInline(c.extents, c.used)
}

// setContent makes c the content of n: extents, size, used, crc, version,
// clearing the object part's sums, and dropping the old content. POSIX
// writers of the old content become stale. The caller stores n.
func (o *op) setContent(t cluster.Txn, n *record.Inode, c *content) error {
	if err := o.dropContent(t, n); err != nil {
		return err
	}
	if err := o.storeContent(t, c); err != nil {
		return err
	}
	n.Content, n.Size, n.Used, n.CRC = c.id, c.size, c.used, c.crc
	n.Set(record.FlagCRC, !c.noCRC)
	n.Set(record.FlagRefs, extents.HasRefs(c.extents))
	n.Set(record.FlagOneInline, c.oneInline())
	n.Epoch++
	o.contentChanged(n)
	return nil
}

// contentChanged moves n's version and forgets what described the old bytes.
func (o *op) contentChanged(n *record.Inode) {
	n.Version++
	n.ForgetSums()
	o.feed.InodeChanged(n.Ino, true)
}

// storeContent writes c's extents, or ends their staging.
func (o *op) storeContent(t cluster.Txn, c *content) error {
	if !c.staged {
		return putExtents(t, c.id, c.extents)
	}
	b, err := t.Get(record.ContentKey(c.id))
	if err != nil {
		return err
	}
	if b == nil {
		return fmt.Errorf("content %d waited too long to be published: %w", c.id, ErrStale)
	}
	o.contents.published = append(o.contents.published, c.id)
	return t.Delete(record.ContentKey(c.id))
}

// putExtents stores extents of content id. What they refer to is held
// already (refExtents).
func putExtents(t cluster.Txn, id ContentID, list []record.Extent) error {
	for i := range list {
		if err := t.Set(record.ExtentKey(id, list[i].Off), list[i].Encode()); err != nil {
			return err
		}
	}
	return nil
}

// stage stores the extents of a content that has too many for the
// transaction that publishes it. Until then they stand under a staging
// record, by which the collector finds what a crash leaves.
func (fs *FS) stage(ctx context.Context, c *content) error {
	limit := extents.PerTxn(fs.kv)
	if c.staged || len(c.extents) <= limit {
		return nil
	}
	fs.staged.Add(c.id) // until published or discarded
	// The transaction that publishes makes these durable too.
	ctx = cluster.Relaxed(ctx)
	staging := record.Content{Staging: true, MadeNS: fs.cfg.Now().UnixNano()}.Encode()
	for i := 0; i < len(c.extents); i += limit / 2 {
		batch := c.extents[i:min(i+limit/2, len(c.extents))]
		err := fs.update(ctx, func(t cluster.Txn, o *op) error {
			if err := t.Set(record.ContentKey(c.id), staging); err != nil {
				return err
			}
			return putExtents(t, c.id, batch)
		})
		if err != nil {
			return err
		}
		c.staged = true // also after a part of it: discard must know
	}
	return nil
}

// dropContentExtents is how many inline extents are deleted at once instead
// of through the queue.
const dropContentExtents = 8

// dropContent removes n's content: at once if it is inline and unshared,
// else through the queue, or only n's hold on it if others refer to it.
// Size, version and the rest are the caller's.
func (o *op) dropContent(t cluster.Txn, n *record.Inode) error {
	c, used := n.Content, n.Used
	shared, oneInline := n.Has(record.FlagShared), n.Has(record.FlagOneInline)
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
			return t.Set(record.ContentKey(c), record.Content{Held: false}.Encode())
		}
		if err := t.Delete(record.ContentKey(c)); err != nil {
			return err
		}
	}
	if oneInline {
		return t.Delete(record.ExtentKey(c, 0))
	}
	// Of what POSIX wrote most is one inline extent too: to look it up and see
	// that it holds all bytes costs less than to scan for others.
	v, err := t.Get(record.ExtentKey(c, 0))
	if err != nil {
		return err
	}
	if v != nil {
		if e, err := record.DecodeExtent(0, v); err == nil && e.Kind == record.ExtentInline && e.Len == used {
			return t.Delete(record.ExtentKey(c, 0))
		}
	}
	return o.removeContent(t, c)
}

// removeContent deletes a content that nobody holds any more.
func (o *op) removeContent(t cluster.Txn, c ContentID) error {
	list, more, err := extents.Load(t, c, 0, MaxFileBytes, dropContentExtents)
	if err != nil {
		return err
	}
	if more || !extents.AllInline(list) {
		return o.enqueue(t, record.QueueEntry{Kind: record.QueueContent, Content: c})
	}
	for i := range list {
		if err := t.Delete(record.ExtentKey(c, list[i].Off)); err != nil {
			return err
		}
	}
	return nil
}

// releaseRef ends user's hold on source, which goes if nobody else has one.
func (o *op) releaseRef(t cluster.Txn, source, user ContentID) error {
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
	return o.removeContent(t, source)
}

// cloneContent returns a content that shares n's bytes by reference (inline
// bytes are copied) and makes n's shared, storing n if that changed it. id
// comes from fs.ids.take. The clone must be published in this transaction.
func (o *op) cloneContent(t cluster.Txn, n *record.Inode, id ContentID) (*content, error) {
	list, err := o.refExtents(t, n, id, 0, n.Size, 0)
	if err != nil {
		return nil, err
	}
	c := &content{id: id, size: n.Size, used: n.Used, crc: n.CRC, noCRC: !n.Has(record.FlagCRC), extents: list}
	if len(list) == 0 {
		c.id, c.used = 0, 0
	}
	return c, nil
}

// maxRefRuns bounds the extents that one reference to a range may become.
const maxRefRuns = 1 << 16

var errTooFragmented = errors.New("content is too fragmented to be shared")

// refExtents returns extents for content user, the first byte at offset at,
// that name the bytes [off, off+length) of n's content. Unless these are
// inline and few, which copies them, n's content becomes shared (n is stored
// then) and user holds it, or the contents that it refers to itself: a
// reference never leads to another.
func (o *op) refExtents(t cluster.Txn, n *record.Inode, user ContentID, off, length, at int64) ([]record.Extent, error) {
	end := min(off+length, n.Size)
	if n.Content == 0 || off >= end {
		return nil, nil
	}
	if end-off <= int64(o.fs.cfg.InlineBytes) {
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
		list, more, err := extents.Load(t, n.Content, off, end, maxRefRuns)
		if err != nil {
			return nil, err
		}
		if more {
			return nil, fmt.Errorf("%w: %w", ErrTooLarge, errTooFragmented)
		}
		runs = refRuns(n.Content, list, off, end)
	}
	if len(runs) > o.fs.refRunLimit() {
		return nil, fmt.Errorf("%w: %w", ErrTooLarge, errTooFragmented)
	}
	held := make(map[ContentID]bool)
	for i := range runs {
		e := &runs[i]
		e.Off += at - off
		if held[e.Src] {
			continue
		}
		held[e.Src] = true
		if e.Src == n.Content {
			if err := o.share(t, n); err != nil {
				return nil, err
			}
		}
		if err := t.Set(record.RefKey(e.Src, user), []byte{}); err != nil {
			return nil, err
		}
	}
	return runs, nil
}

// refRuns turns extents of content c into as few references as name the same
// bytes within [from, to): one for each run of c's own, holes included, and
// one for each run of references to one source.
func refRuns(c ContentID, list []record.Extent, from, to int64) (runs []record.Extent) {
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

// share marks n's content as shared, and stores n.
func (o *op) share(t cluster.Txn, n *record.Inode) error {
	if n.Has(record.FlagShared) {
		return nil
	}
	n.Set(record.FlagShared, true)
	if err := t.Set(record.ContentKey(n.Content), record.Content{Held: true}.Encode()); err != nil {
		return err
	}
	return record.PutInode(t, n)
}

// makeWritable gives n a content that may change in place: if its own is
// shared, content id, which refers to it. The caller stores n.
func (o *op) makeWritable(t cluster.Txn, n *record.Inode, id ContentID) error {
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
	c, err := o.cloneContent(t, n, id)
	if errors.Is(err, errTooFragmented) {
		return errDetach
	}
	if err != nil {
		return err
	}
	if err := o.dropContent(t, n); err != nil {
		return err
	}
	if err := putExtents(t, id, c.extents); err != nil {
		return err
	}
	n.Content, n.Used = id, c.used
	n.Set(record.FlagRefs, extents.HasRefs(c.extents))
	return nil
}
