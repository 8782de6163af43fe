package vfs

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"ogw/cluster"
	"ogw/vfs/internal/extents"
	"ogw/vfs/internal/record"

	"github.com/minio/crc64nvme"
)

const (
	// A flush is several transactions if it holds more than these. An item
	// costs about flushItemOps operations, and flushCutOps for every extent
	// that it replaces.
	limitedFlushOps   = 80
	unlimitedFlushOps = 16384
	flushItemOps      = 9
	flushCutOps       = 9
	// flushInlineBytes bounds the inline bytes of one transaction.
	flushInlineBytes = 512 << 10
	// maxFlushAttempts bounds how often a flush finds its content changed
	// under it (shared, truncated) and moves its blobs.
	maxFlushAttempts = 16
)

// flushItem is one new extent of a flush: part of an upload, or small pieces.
type flushItem struct {
	off, len int64
	up       *blobUpload
	upOff    int64
	small    [][]byte // consecutive; else
}

func (it *flushItem) end() int64 { return it.off + it.len }

// flushPlan is what one flush stores. It holds the chunks and uploads.
type flushPlan struct {
	items    []flushItem
	chunks   []*chunk
	epoch    uint64
	writes   uint64
	mtimeNS  int64
	dirtyNS  int64
	killPriv bool
	kept     []keptMark
	keep     map[uint64]bool // blobs of the items
	named    bool            // a transaction may have named the blobs
	inode    *record.Inode   // as the last transaction left it
}

func (p *flushPlan) uploads() (list []*blobUpload) {
	for i := range p.items {
		if u := p.items[i].up; u != nil && (len(list) == 0 || list[len(list)-1] != u) {
			list = append(list, u)
		}
	}
	return list
}

// flush stores all that was written before. It is as durable as ctx asks.
// When it fails the bytes stay, to be tried again, except with ErrStale.
func (of *openFile) flush(ctx context.Context) error {
	of.flushMu.Lock()
	defer of.flushMu.Unlock()
	of.mu.RLock()
	clean := len(of.pieces) == 0
	of.mu.RUnlock()
	if clean {
		of.mu.Lock()
		if len(of.pieces) == 0 {
			of.retire() // what it held was overwritten
			of.releaseKept(slices.Clone(of.kept))
		}
		of.mu.Unlock()
		return nil
	}
	plan, err := of.capture(ctx)
	if plan == nil {
		return err
	}
	err = of.awaitUploads(ctx, plan)
	for attempt := 0; err == nil; attempt++ {
		var move *retargetError
		err = of.publish(ctx, plan)
		if !errors.As(err, &move) {
			break
		}
		if attempt == maxFlushAttempts {
			err = fmt.Errorf("%w: inode %d", ErrConflict, of.ino)
			break
		}
		err = of.retarget(ctx, plan, move)
	}
	of.finishFlush(plan, err)
	return err
}

// capture freezes the pieces and starts the uploads that are missing.
func (of *openFile) capture(ctx context.Context) (*flushPlan, error) {
	for {
		err := of.lock(ctx)
		if errors.Is(err, ErrStale) { // the inode is gone
			of.mu.Lock()
			of.dropPieces(err)
			of.mu.Unlock()
		}
		if err != nil {
			return nil, err
		}
		if of.nextID != 0 {
			break
		}
		of.mu.Unlock()
		if err := of.spareID(ctx); err != nil {
			return nil, err
		}
	}
	defer of.mu.Unlock()
	if len(of.pieces) == 0 {
		return nil, of.lostSince(of.lostSeq) // dropped by the new snapshot
	}
	of.retire()
	plan := &flushPlan{epoch: of.epoch, writes: of.writes, mtimeNS: of.mtimeNS, dirtyNS: of.dirtyNS, killPriv: of.killPriv,
		keep: make(map[uint64]bool)}
	plan.kept = slices.Clone(of.kept)
	of.captured, of.dirtyNS = of.writes, 0
	for i := 0; i < len(of.pieces); {
		j, length := i, int64(0)
		for j < len(of.pieces) && of.pieces[j].open() && (j == i || of.pieces[j].off == of.pieces[j-1].end()) {
			length += of.pieces[j].len
			j++
		}
		if length > int64(of.fs.cfg.InlineBytes) {
			of.uploadRun(i, j)
		}
		i = max(j, i+1)
	}
	for _, p := range of.pieces {
		plan.add(p)
	}
	return plan, nil
}

func (p *flushPlan) add(x *piece) {
	x.captured = true
	if x.chunk != nil {
		x.chunk.refs++
		p.chunks = append(p.chunks, x.chunk)
	}
	if k := len(p.items) - 1; k >= 0 && p.items[k].end() == x.off && p.items[k].up == x.up &&
		(x.up == nil || p.items[k].upOff+p.items[k].len == x.upOff) {
		it := &p.items[k]
		it.len += x.len
		if x.up == nil {
			it.small = append(it.small, x.data)
		}
		return
	}
	it := flushItem{off: x.off, len: x.len, up: x.up, upOff: x.upOff}
	if x.up != nil {
		x.up.refs.Add(1)
	} else {
		it.small = [][]byte{x.data}
	}
	p.items = append(p.items, it)
}

// fragments tells, by chance, that the flush stored small extents: each of
// them asks for a look at the file with a probability that makes one look
// for many of them, whether the file stays open or is opened for each.
func (p *flushPlan) fragments() bool {
	small := 0
	for i := range p.items {
		if p.items[i].len < compactWindow/compactSmall {
			small++
		}
	}
	return rand.IntN(compactExtents/4) < small
}

func (of *openFile) awaitUploads(ctx context.Context, plan *flushPlan) error {
	var first error
	for _, u := range plan.uploads() {
		select {
		case <-u.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if u.err != nil && first == nil {
			first = u.err
		}
	}
	return first
}

// retargetError asks for the uploads to be moved to another content.
type retargetError struct {
	to    ContentID
	fresh bool // no transaction named it yet
}

func (e *retargetError) Error() string { return fmt.Sprintf("content is %d by now", e.to) }

// flushPos is how far a flush came.
type flushPos struct {
	item int
	off  int64
}

// publish stores the items in as many transactions as it takes, each of
// which leaves a consistent file.
func (of *openFile) publish(ctx context.Context, plan *flushPlan) error {
	for _, u := range plan.uploads() {
		plan.keep[u.id.Seq] = true
	}
	pos := flushPos{off: plan.items[0].off}
	for pos.item < len(plan.items) {
		var next flushPos
		var n *record.Inode
		spare, err := of.fs.ids.Take(ctx)
		if err != nil {
			return err
		}
		err = of.fs.updateFile(ctx, of.ino, func(t cluster.Txn, o *op) (err error) {
			n, next, err = of.publishSome(t, o, plan, pos, ContentID(spare))
			return err
		})
		if err != nil {
			plan.named = plan.named || errors.Is(err, ErrUnavailable)
			return err
		}
		pos, plan.named, plan.inode = next, true, n
	}
	return nil
}

// publishSome is one transaction of publish.
func (of *openFile) publishSome(t cluster.Txn, o *op, plan *flushPlan, pos flushPos, spare ContentID) (*record.Inode, flushPos, error) {
	n, err := record.GetInode(t, of.ino)
	if err != nil {
		return nil, pos, err
	}
	if n.Epoch != plan.epoch {
		return nil, pos, fmt.Errorf("inode %d was replaced: %w", of.ino, ErrStale)
	}
	if err := fileFlagsOf(n).checkFlush(pos.off, n.Size); err != nil && !of.fs.feed.Complete() {
		return nil, pos, err
	}
	if err := of.settleTarget(t, o, n, plan, spare); err != nil {
		return nil, pos, err
	}
	oldSize, oldCRC, hadCRC, first := n.Size, n.CRC, n.Has(record.FlagCRC), pos.item == 0 && pos.off == plan.items[0].off
	ops, bytes := o.fs.tune.flushOps, 16*flushInlineBytes
	if extents.PerTxn(o.fs.kv) == extents.LimitedTxn {
		ops, bytes = limitedFlushOps, flushInlineBytes
	}
	for pos.item < len(plan.items) && ops >= flushItemOps+flushCutOps && bytes > 0 {
		it := &plan.items[pos.item]
		done, cut, err := o.storeItem(t, n, it, pos.off, (ops-flushItemOps)/flushCutOps, plan.keep)
		if err != nil {
			return nil, pos, err
		}
		ops -= flushItemOps + cut*flushCutOps
		if it.up == nil {
			bytes -= int(it.len)
		}
		n.Size = max(n.Size, done)
		if pos.off = done; done == it.end() {
			if pos.item++; pos.item < len(plan.items) {
				pos.off = plan.items[pos.item].off
			}
		}
	}
	n.Set(record.FlagCRC, false)
	last := pos.item == len(plan.items)
	if crc, ok := plan.crc(oldSize, oldCRC, hadCRC); ok && first && last {
		n.CRC = crc
		n.Set(record.FlagCRC, true)
	}
	n.ForgetSums()
	n.Version++
	if last {
		n.Version += plan.writes - 1
	}
	n.Mtime, n.CtimeNS = TimeNS(plan.mtimeNS), max(n.CtimeNS, plan.mtimeNS)
	if plan.killPriv {
		n.Mode = dropSetID(n.Mode)
	}
	if err := dropCapability(t, n); err != nil {
		return nil, pos, err
	}
	o.stored(n.Ino)
	if last {
		of.committing.Store(n.Version)
	}
	return n, pos, record.PutInode(t, n)
}

// settleTarget makes n's content one that the uploads belong to and that may
// change in place.
func (of *openFile) settleTarget(t cluster.Txn, o *op, n *record.Inode, plan *flushPlan, spare ContentID) error {
	writable := n.Content != 0 && !n.Has(record.FlagShared)
	if n.Has(record.FlagShared) {
		referred, err := record.AnyKey(t, record.RefPrefix(n.Content))
		if err != nil {
			return err
		}
		writable = !referred
	}
	uploads, want := plan.uploads(), spare
	switch {
	case writable:
		want = n.Content
	case len(uploads) > 0 && !plan.named:
		of.mu.RLock()
		if of.fresh && uint64(of.target) == uploads[0].id.Content {
			want = of.target
		}
		of.mu.RUnlock()
	}
	for _, u := range uploads {
		if u.id.Content != uint64(want) {
			return &retargetError{to: want, fresh: !writable}
		}
	}
	return o.makeWritable(t, n, want)
}

// storeItem replaces what lies under it, from offset off on, and returns up
// to where it came.
func (o *op) storeItem(t cluster.Txn, n *record.Inode, it *flushItem, off int64, limit int, keep map[uint64]bool) (done int64, cut int, err error) {
	if it.up == nil {
		return o.storeSmall(t, n, it, off, limit, keep)
	}
	done, cut, err = o.cutRange(t, n, off, it.end(), limit, keep)
	if err != nil {
		return off, cut, err
	}
	e := record.Extent{Off: it.off, Len: it.len, Kind: record.ExtentBlob, Seq: it.up.id.Seq, BlobOff: it.upOff, BlobSize: it.up.size, BlobCRC: it.up.crc}
	e = e.Slice(off, done)
	if off > it.off { // a transaction before stored the beginning
		list, _, err := extents.Load(t, n.Content, off-1, off, 1)
		if err != nil {
			return off, cut, err
		}
		if len(list) == 1 && list[0].Kind == record.ExtentBlob && list[0].Seq == e.Seq && list[0].BlobOff+list[0].Len == e.BlobOff {
			n.Used += e.Len
			e.Off, e.BlobOff, e.Len = list[0].Off, list[0].BlobOff, e.Len+list[0].Len
			return done, cut, t.Set(record.ExtentKey(n.Content, e.Off), e.Encode())
		}
	}
	n.Used += e.Len
	o.contents.touch(n.Content)
	return done, cut, t.Set(record.ExtentKey(n.Content, e.Off), e.Encode())
}

// storeSmall stores small pieces as one inline extent, together with inline
// neighbours, so that a log of short lines does not become thousands of
// extents.
func (o *op) storeSmall(t cluster.Txn, n *record.Inode, it *flushItem, off int64, limit int, keep map[uint64]bool) (done int64, cut int, err error) {
	data := make([]byte, 0, it.len)
	for _, p := range it.small {
		data = append(data, p...)
	}
	data = data[off-it.off:]
	from, end := off, it.end()
	if from, data, err = o.mergeInline(t, n, from, data); err != nil {
		return off, 0, err
	}
	mergedEnd := from + int64(len(data))
	to, cut, err := o.cutRange(t, n, from, mergedEnd, limit, keep)
	if err != nil {
		return off, cut, err
	}
	if to < mergedEnd { // too many extents below it for this transaction
		data = data[:to-from]
		end = min(end, to)
	}
	n.Used += int64(len(data))
	o.contents.touch(n.Content)
	e := record.Extent{Off: from, Len: int64(len(data)), Kind: record.ExtentInline, Data: data}
	return end, cut, t.Set(record.ExtentKey(n.Content, from), e.Encode())
}

// mergeInline returns data for off with the bytes of the inline extents that
// overlap or touch it, as far as the whole stays within InlineBytes.
func (o *op) mergeInline(t cluster.Txn, n *record.Inode, off int64, data []byte) (int64, []byte, error) {
	limit := int64(o.fs.cfg.InlineBytes)
	end := off + int64(len(data))
	list, _, err := extents.Load(t, n.Content, max(off-1, 0), end+1, dropContentExtents)
	if err != nil {
		return off, data, err
	}
	for i := range list {
		e := &list[i]
		if e.Kind != record.ExtentInline || e.End() < off || e.Off > end {
			continue
		}
		from, to := min(off, e.Off), max(end, e.End())
		if to-from > limit {
			continue
		}
		merged := make([]byte, to-from)
		copy(merged[e.Off-from:], e.Data)
		copy(merged[off-from:], data)
		off, end, data = from, to, merged
	}
	return off, data, nil
}

// crc returns the checksum of the whole file after the flush, if it can be
// told: the items are one run that covers the file, or that follows its end.
func (p *flushPlan) crc(oldSize int64, old uint64, hadOld bool) (uint64, bool) {
	start := p.items[0].off
	end := p.items[len(p.items)-1].end()
	var crc uint64
	switch {
	case start == 0 && end >= oldSize:
	case start == oldSize && hadOld:
		crc = old
	default:
		return 0, false
	}
	pos := start
	for i := range p.items {
		it := &p.items[i]
		if it.off != pos {
			return 0, false
		}
		pos = it.end()
		if it.up == nil {
			for _, b := range it.small {
				crc = cluster.CombineCRC64(crc, crc64nvme.Checksum(b), int64(len(b)))
			}
			continue
		}
		if it.upOff != 0 || it.len != it.up.size {
			return 0, false
		}
		crc = cluster.CombineCRC64(crc, it.up.crc, it.len)
	}
	return crc, true
}

// finishFlush removes the pieces that are stored, or thaws them.
func (of *openFile) finishFlush(plan *flushPlan, err error) {
	of.mu.Lock()
	if plan.named {
		for _, u := range plan.uploads() {
			u.published.Store(true)
			if ContentID(u.id.Content) == of.target {
				of.fresh = false
			}
		}
	}
	switch {
	case err == nil:
		of.last = plan.inode
		of.releaseKept(plan.kept)
		kept := of.pieces[:0]
		for _, p := range of.pieces {
			if p.captured {
				of.freePiece(p)
			} else {
				kept = append(kept, p)
			}
		}
		clear(of.pieces[len(kept):])
		of.pieces = kept
		of.writes -= plan.writes
		if len(kept) == 0 {
			of.killPriv, of.pieces = false, nil
		}
	case errors.Is(err, ErrStale):
		of.captured, of.writes = 0, 0
		of.dropPieces(err)
	default:
		for _, p := range of.pieces {
			p.captured = false
		}
		of.dirtyNS = plan.dirtyNS
	}
	of.captured = 0
	of.committing.Store(0)
	if err == nil && plan.fragments() {
		of.fs.compactSoon(of.ino)
	}
	for _, c := range plan.chunks {
		of.releaseChunk(c)
	}
	of.mu.Unlock()
	for i := range plan.items {
		if u := plan.items[i].up; u != nil {
			of.fs.releaseBlobUpload(u)
		}
	}
}
