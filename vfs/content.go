package vfs

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"ogw/cluster"
)

// content is a written content that no inode holds yet.
type content struct {
	id      ContentID // 0: empty
	size    int64
	used    int64
	crc     uint64 // CRC64NVME of the whole
	noCRC   bool   // crc is unknown
	extents []extent
	// staged tells that the extents are stored already (more than fit one
	// transaction) and stand under a staging record.
	staged bool
}

// contentRecord is what key 's' holds.
//
// Value: kind (1 byte), then of a staging record the time it was made (8,
// Unix nanoseconds), of a shared one whether an inode holds it (1).
type contentRecord struct {
	staging bool
	madeNS  int64
	held    bool
}

const (
	recordStaging byte = 1
	recordShared  byte = 2
)

func (r contentRecord) encode() []byte {
	if r.staging {
		return binary.BigEndian.AppendUint64([]byte{recordStaging}, uint64(r.madeNS))
	}
	held := byte(0)
	if r.held {
		held = 1
	}
	return []byte{recordShared, held}
}

func decodeContentRecord(b []byte) (r contentRecord, err error) {
	d := decoder{b: b, what: "content"}
	switch d.byte() {
	case recordStaging:
		r.staging, r.madeNS = true, int64(d.fixed64())
	case recordShared:
		v := d.byte()
		if v > 1 {
			d.fail()
		}
		r.held = v == 1
	default:
		d.fail()
	}
	return r, d.end()
}

// setContent makes c the content of n: extents, size, used, crc, version,
// clearing the object part's sums, and dropping the old content. POSIX
// writers of the old content become stale. The caller stores n.
func (o *op) setContent(t cluster.Txn, n *inode, c *content) error {
	if err := o.dropContent(t, n); err != nil {
		return err
	}
	if err := o.storeContent(t, c); err != nil {
		return err
	}
	n.content, n.size, n.used, n.crc = c.id, c.size, c.used, c.crc
	n.set(flagCRC, !c.noCRC)
	n.set(flagRefs, hasRefs(c.extents))
	n.epoch++
	o.contentChanged(n)
	return nil
}

// contentChanged moves n's version and forgets what described the old bytes.
func (o *op) contentChanged(n *inode) {
	n.version++
	n.forgetSums()
	o.inodeChanged(n.ino, true)
}

// forgetSums is for every change of content: what described the old bytes, and
// what their owner granted to others, does not hold for the new ones.
func (n *inode) forgetSums() {
	n.set(flagVerf, false)
	n.setGrants(nil)
	n.object.sum, n.object.nparts = nil, 0
	n.object.checksums, n.object.parts = nil, nil
}

// storeContent writes c's extents, or ends their staging.
func (o *op) storeContent(t cluster.Txn, c *content) error {
	if !c.staged {
		return putExtents(t, c.id, c.extents)
	}
	b, err := t.Get(contentKey(c.id))
	if err != nil {
		return err
	}
	if b == nil {
		return fmt.Errorf("content %d waited too long to be published: %w", c.id, ErrStale)
	}
	o.published = append(o.published, c.id)
	return t.Delete(contentKey(c.id))
}

// putExtents stores extents of content id. What they refer to is held
// already (refExtents).
func putExtents(t cluster.Txn, id ContentID, list []extent) error {
	for i := range list {
		if err := t.Set(extentKey(id, list[i].off), list[i].encode()); err != nil {
			return err
		}
	}
	return nil
}

// stage stores the extents of a content that has too many for the
// transaction that publishes it. Until then they stand under a staging
// record, by which the collector finds what a crash leaves.
func (fs *FS) stage(ctx context.Context, c *content) error {
	limit := fs.txnExtents()
	if c.staged || len(c.extents) <= limit {
		return nil
	}
	fs.staged.add(c.id) // until published or discarded
	// The transaction that publishes makes these durable too.
	ctx = cluster.Relaxed(ctx)
	record := contentRecord{staging: true, madeNS: fs.cfg.Now().UnixNano()}.encode()
	for i := 0; i < len(c.extents); i += limit / 2 {
		batch := c.extents[i:min(i+limit/2, len(c.extents))]
		err := fs.update(ctx, func(t cluster.Txn, o *op) error {
			if err := t.Set(contentKey(c.id), record); err != nil {
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
func (o *op) dropContent(t cluster.Txn, n *inode) error {
	c, shared, used := n.content, n.has(flagShared), n.used
	n.content, n.used = 0, 0
	n.set(flagShared|flagRefs, false)
	if c == 0 {
		return nil
	}
	if shared {
		referred, err := anyKey(t, refPrefix(c))
		if err != nil {
			return err
		}
		if referred {
			return t.Set(contentKey(c), contentRecord{held: false}.encode())
		}
		if err := t.Delete(contentKey(c)); err != nil {
			return err
		}
	}
	// Most contents are one inline extent: to look it up and see that it
	// holds all bytes costs less than to scan for others.
	v, err := t.Get(extentKey(c, 0))
	if err != nil {
		return err
	}
	if v != nil {
		if e, err := decodeExtent(0, v); err == nil && e.kind == extentInline && e.len == used {
			return t.Delete(extentKey(c, 0))
		}
	}
	return o.removeContent(t, c)
}

// removeContent deletes a content that nobody holds any more.
func (o *op) removeContent(t cluster.Txn, c ContentID) error {
	list, more, err := loadExtents(t, c, 0, MaxFileBytes, dropContentExtents)
	if err != nil {
		return err
	}
	if more || !allInline(list) {
		return o.enqueue(t, queueEntry{kind: queueContent, content: c})
	}
	for i := range list {
		if err := t.Delete(extentKey(c, list[i].off)); err != nil {
			return err
		}
	}
	return nil
}

// releaseRef ends user's hold on source, which goes if nobody else has one.
func (o *op) releaseRef(t cluster.Txn, source, user ContentID) error {
	b, err := t.Get(refKey(source, user))
	if err != nil || b == nil {
		return err
	}
	if err := t.Delete(refKey(source, user)); err != nil {
		return err
	}
	v, err := t.Get(contentKey(source))
	if err != nil || v == nil {
		return err
	}
	r, err := decodeContentRecord(v)
	if err != nil || r.staging || r.held {
		return err
	}
	referred, err := anyKey(t, refPrefix(source))
	if err != nil || referred {
		return err
	}
	if err := t.Delete(contentKey(source)); err != nil {
		return err
	}
	return o.removeContent(t, source)
}

// cloneContent returns a content that shares n's bytes by reference (inline
// bytes are copied) and makes n's shared, storing n if that changed it. id
// comes from fs.ids.take. The clone must be published in this transaction.
func (o *op) cloneContent(t cluster.Txn, n *inode, id ContentID) (*content, error) {
	list, err := o.refExtents(t, n, id, 0, n.size, 0)
	if err != nil {
		return nil, err
	}
	c := &content{id: id, size: n.size, used: n.used, crc: n.crc, noCRC: !n.has(flagCRC), extents: list}
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
func (o *op) refExtents(t cluster.Txn, n *inode, user ContentID, off, length, at int64) ([]extent, error) {
	end := min(off+length, n.size)
	if n.content == 0 || off >= end {
		return nil, nil
	}
	if end-off <= int64(o.fs.cfg.InlineBytes) {
		list, more, err := loadExtents(t, n.content, off, end, dropContentExtents)
		if err != nil {
			return nil, err
		}
		if !more && allInline(list) {
			for i := range list {
				list[i] = list[i].clip(off, end)
				list[i].off += at - off
			}
			return list, nil
		}
	}
	runs := []extent{{off: off, len: end - off, kind: extentRef, src: n.content, srcOff: off}}
	if n.has(flagRefs) {
		list, more, err := loadExtents(t, n.content, off, end, maxRefRuns)
		if err != nil {
			return nil, err
		}
		if more {
			return nil, fmt.Errorf("%w: %w", ErrTooLarge, errTooFragmented)
		}
		runs = refRuns(n.content, list, off, end)
	}
	if len(runs) > o.fs.refRunLimit() {
		return nil, fmt.Errorf("%w: %w", ErrTooLarge, errTooFragmented)
	}
	held := make(map[ContentID]bool)
	for i := range runs {
		e := &runs[i]
		e.off += at - off
		if held[e.src] {
			continue
		}
		held[e.src] = true
		if e.src == n.content {
			if err := o.share(t, n); err != nil {
				return nil, err
			}
		}
		if err := t.Set(refKey(e.src, user), []byte{}); err != nil {
			return nil, err
		}
	}
	return runs, nil
}

// refRuns turns extents of content c into as few references as name the same
// bytes within [from, to): one for each run of c's own, holes included, and
// one for each run of references to one source.
func refRuns(c ContentID, list []extent, from, to int64) (runs []extent) {
	for i := range list {
		e := list[i].clip(from, to)
		if e.kind != extentRef {
			e = extent{off: e.off, len: e.len, kind: extentRef, src: c, srcOff: e.off}
		}
		if k := len(runs) - 1; k >= 0 && runs[k].src == e.src && e.off-runs[k].off == e.srcOff-runs[k].srcOff &&
			(e.src == c || runs[k].end() == e.off) {
			runs[k].len = e.end() - runs[k].off
			continue
		}
		runs = append(runs, e)
	}
	return runs
}

// share marks n's content as shared, and stores n.
func (o *op) share(t cluster.Txn, n *inode) error {
	if n.has(flagShared) {
		return nil
	}
	n.set(flagShared, true)
	if err := t.Set(contentKey(n.content), contentRecord{held: true}.encode()); err != nil {
		return err
	}
	return putInode(t, n)
}

// makeWritable gives n a content that may change in place: if its own is
// shared, content id, which refers to it. The caller stores n.
func (o *op) makeWritable(t cluster.Txn, n *inode, id ContentID) error {
	if n.content == 0 {
		n.content = id
		return nil
	}
	if !n.has(flagShared) {
		return nil
	}
	referred, err := anyKey(t, refPrefix(n.content))
	if err != nil {
		return err
	}
	if !referred {
		n.set(flagShared, false)
		return t.Delete(contentKey(n.content))
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
	n.content, n.used = id, c.used
	n.set(flagRefs, hasRefs(c.extents))
	return nil
}
