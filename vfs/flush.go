package vfs

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/content"
	"ogw/vfs/internal/extents"
	"ogw/vfs/internal/perm"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/tokens"
	"ogw/vfs/internal/xattr"
)

const (
	// A flush is several transactions if it holds more than these. An item
	// costs about flushItemOps operations, and flushCutOps for every extent
	// that it replaces.
	limitedFlushOps   = 80
	unlimitedFlushOps = 16384
	flushItemOps      = 10
	flushCutOps       = 9
	// flushInlineBytes bounds the inline bytes of one transaction.
	flushInlineBytes = 512 << 10
	// maxFlushAttempts bounds how often a flush finds its content changed
	// under it (shared, truncated) and moves its blobs.
	maxFlushAttempts = 16
)

// flushPlan is what one flush stores. It holds the chunks and uploads.
type flushPlan struct {
	items    []flushItem
	chunks   []*chunk
	epoch    uint64
	writes   uint64
	turn     uint64 // of the last write that it holds
	mtimeNS  int64
	base     uint64 // openFile.base
	dirtyNS  int64
	killPriv bool
	kept     []keptMark
	tried    []triedPiece
	keep     map[uint64]bool // blobs of the items
	named    bool            // a transaction may have named the blobs
	fresh    ContentID       // that the blobs were moved to, which none named; 0 for none
	inode    *record.Inode   // as the last transaction left it
	after    *fileSnap       // the same, if that transaction is known to have run as told
}

func (p *flushPlan) uploads() (list []*blobUpload) {
	for i := range p.items {
		if u := p.items[i].up; u != nil && (len(list) == 0 || list[len(list)-1] != u) {
			list = append(list, u)
		}
	}
	return list
}

// flushUpTo is flush for the writes up to a turn. Callers that wait while a flush runs
// share the next one, and return although there are newer writes: each would otherwise
// store what was written after the one before it had returned, and a file would take a
// transaction for each write, however many are in flight.
func (of *openFile) flushUpTo(ctx context.Context, turn uint64) error {
	of.flushMu.Lock()
	defer of.flushMu.Unlock()
	of.mu.RLock()
	clean, stored := len(of.pieces) == 0, of.flushed >= turn
	of.mu.RUnlock()
	if stored && !clean {
		return nil
	}
	if clean {
		of.flushNothing()
		return nil
	}
	var token *Token // for whichever attempt stores the bytes
	for attempt := 0; ; attempt++ {
		if of.leaveOut(ctx) {
			of.flushNothing()
			return nil
		}
		plan, err := of.capture(ctx)
		if plan == nil {
			return err
		}
		if attempt == 0 {
			token = tokens.Take(ctx)
		}
		err = of.store(ctx, plan, token)
		of.finishFlush(plan, err)
		if !errors.Is(err, errTried) {
			return err
		}
		if attempt == maxFlushAttempts {
			return fmt.Errorf("%w: inode %d", ErrConflict, of.ino)
		}
	}
}

// flushNothing is a flush where no piece is left.
func (of *openFile) flushNothing() {
	of.mu.Lock()
	defer of.mu.Unlock()
	if len(of.pieces) == 0 {
		of.flushed = of.turn
		of.retire() // what it held was overwritten
		of.releaseKept(slices.Clone(of.kept))
	}
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
		return nil, nil // dropped by the new snapshot: File.save reports it
	}
	of.retire()
	plan := &flushPlan{epoch: of.epoch, writes: of.writes, turn: of.turn, mtimeNS: of.mtimeNS, base: of.base, dirtyNS: of.dirtyNS, killPriv: of.killPriv,
		kept: slices.Clone(of.kept), keep: make(map[uint64]bool)}
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
	if x.tried != nil {
		p.tried = append(p.tried, triedPiece{*x.tried, x.off})
	}
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

// lengths are those of the items.
func (p *flushPlan) lengths() iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for i := range p.items {
			if !yield(p.items[i].len) {
				return
			}
		}
	}
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

// publish stores the items in as many transactions as it takes, each of
// which leaves a consistent file.
func (of *openFile) publish(ctx context.Context, plan *flushPlan) error {
	for _, u := range plan.uploads() {
		plan.keep[u.id.Seq] = true
	}
	pos := flushPos{off: plan.items[0].off}
	for pos.item < len(plan.items) {
		var next flushPos
		spare, err := of.fs.ids.Take(ctx)
		if err != nil {
			return err
		}
		plan.after = nil
		after := &fileSnap{gen: of.gen.Load() + 1, at: time.Now()} // who commits counts once
		err = of.fs.updateFile(ctx, of.ino, func(t cluster.Txn, o *op) (err error) {
			after.inode, next, err = of.publishSome(t, o, plan, pos, ContentID(spare))
			o.later.then(func(context.Context) { plan.after = after })
			return err
		})
		if err != nil {
			plan.named = plan.named || errors.Is(err, ErrUnavailable)
			return err
		}
		pos, plan.named, plan.inode = next, true, after.inode
		if pos.item < len(plan.items) {
			plan.storedUpTo(pos)
		}
	}
	return nil
}

// publishSome is one transaction of publish.
func (of *openFile) publishSome(t cluster.Txn, o *op, plan *flushPlan, pos flushPos, spare ContentID) (*record.Inode, flushPos, error) {
	n, err := record.GetInode(t, of.ino)
	if err != nil {
		return nil, pos, err
	}
	if n.Epoch != plan.epoch || of.left.Load() { // closed: others write by another openFile since
		return nil, pos, fmt.Errorf("inode %d was replaced, or closed: %w", of.ino, ErrStale)
	}
	if of.tail {
		pos.off = plan.moveTo(n.Size)
	}
	if err := perm.FlagsOf(n).CheckFlush(pos.off, n.Size); err != nil && !of.fs.feed.Complete() {
		return nil, pos, err
	}
	isNew := n.Content == 0
	if err := of.fitTarget(t, o, n, plan, spare); err != nil {
		return nil, pos, err
	}
	oldSize, oldCRC, hadCRC, first := n.Size, n.CRC, n.Has(record.FlagCRC), pos.item == 0 && pos.off == plan.items[0].off
	ops, bytes := o.fs.tune.flushOps, 16*flushInlineBytes
	if extents.PerTxn(o.fs.kv) == extents.LimitedTxn {
		ops, bytes = limitedFlushOps, flushInlineBytes
	}
	for pos.item < len(plan.items) && ops >= flushItemOps+flushCutOps && bytes > 0 {
		it := &plan.items[pos.item]
		item := it.item()
		done, cut, err := o.contents.StoreItem(t, n, &item, pos.off, content.Bounds{Extents: (ops - flushItemOps) / flushCutOps, Keep: plan.keep, New: isNew})
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
	of.stamp(n, plan)
	of.noteKept(n, plan, pos)
	if plan.killPriv {
		n.Mode = perm.DropSetID(n.Mode)
	}
	if err := xattr.DropCapability(t, n); err != nil {
		return nil, pos, err
	}
	o.Stored(n.Ino)
	if last {
		of.committing.Store(markOf(n))
	} else if of.tail { // the end is another one in the next transaction
		return nil, pos, fmt.Errorf("%w: an append of %d bytes in one transaction", ErrTooLarge, plan.items[len(plan.items)-1].end()-plan.items[0].off)
	}
	return n, pos, record.PutInode(t, n)
}

// stamp sets the times of the writes.
func (of *openFile) stamp(n *record.Inode, plan *flushPlan) {
	of.mu.RLock()
	defer of.mu.RUnlock()
	if of.times.keep(plan.turn, n.CtimeNS) {
		return
	}
	ns := plan.mtimeNS
	if !of.fs.feed.Complete() {
		ns = shownNS(ns, n.CtimeNS, n.Version, plan.base)
	}
	n.Mtime, n.CtimeNS = TimeNS(ns), max(n.CtimeNS, ns)
}

// shownNS is the time, beside others, of a file in a version that has writes over what is
// stored, which changed at storedNS. It is another one for each version: clients keep bytes
// by the times of a file, and these writes may be older than what others have stored since,
// whose clocks may be others, too. base is the version below the writes when the first of
// them came.
func shownNS(mtimeNS, storedNS int64, version, base uint64) int64 {
	return max(mtimeNS, storedNS) + int64(max(version, base)-base)
}

// fitTarget makes n's content one that the uploads belong to and that may
// change in place.
func (of *openFile) fitTarget(t cluster.Txn, o *op, n *record.Inode, plan *flushPlan, spare ContentID) error {
	if plan.inode == nil && plan.storedIn(n) { // what earlier flushes stored shows in the first transaction
		return errTried
	}
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
		if have := ContentID(uploads[0].id.Content); have == plan.fresh || of.fresh && have == of.target {
			want = have
		}
		of.mu.RUnlock()
	}
	for _, u := range uploads {
		if u.id.Content != uint64(want) {
			return &retargetError{to: want, fresh: !writable}
		}
	}
	return o.contents.MakeWritable(t, n, want)
}

// finishFlush removes the pieces that are stored, or thaws them.
func (of *openFile) finishFlush(plan *flushPlan, err error) {
	of.mu.Lock()
	if plan.named {
		for _, u := range plan.uploads() {
			u.published.Store(true)
			u.named.Store(u.named.Load() || err == nil)
			if ContentID(u.id.Content) == of.target {
				of.fresh = false
			}
		}
	}
	switch {
	case err == nil:
		of.last, of.placed, of.base = plan.inode, plan.items[0].off, plan.inode.Version
		of.follow(plan.after)
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
		of.flushed = plan.turn
		if len(kept) == 0 {
			of.killPriv, of.pieces = false, nil
		}
	case of.epoch != plan.epoch: // its pieces were dropped, and others came (load)
		of.writes -= plan.writes
	case errors.Is(err, ErrStale):
		of.captured, of.writes = 0, 0
		of.dropPieces(err)
	default:
		of.thaw(plan)
		of.dirtyNS = plan.dirtyNS
	}
	of.captured = 0
	of.committing.Store(nil)
	if err == nil {
		of.fs.contents.Flushed(of.ino, plan.lengths())
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
