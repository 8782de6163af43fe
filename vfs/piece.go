package vfs

import (
	"context"
	"errors"
	"slices"
	"sort"
	"sync/atomic"

	"ogw/cluster"
	"ogw/vfs/internal/content"
	"ogw/vfs/internal/ids"
	"ogw/vfs/internal/record"

	"github.com/minio/crc64nvme"
)

// piece is a range of a file that was written and not flushed: bytes in a
// chunk, or within an upload, or both while it is under way. All but upload
// is guarded by openFile.mu.
type piece struct {
	off, len int64
	chunk    *chunk // nil once uploaded
	data     []byte // within chunk
	up       *blobUpload
	upOff    int64
	captured bool // belongs to the flush that runs: it must not change
	// tried is the last write that a flush noted which may have stored the piece: the
	// record of the inode tells, so it must not change either.
	tried *keptMark
}

func (p *piece) end() int64 { return p.off + p.len }

// open reports whether the bytes may still change in place.
func (p *piece) open() bool { return p.up == nil && !p.captured && p.tried == nil }

// blobUpload is one blob on its way, or stored and not named by a transaction.
// Each user counts; the last one deletes a blob that was not published.
type blobUpload struct {
	id   cluster.BlobID // changed only by retarget, under openFile.mu
	size int64
	use  *ids.Use // of the number of its blob
	done chan struct{}

	// Set before done is closed:
	crc uint64
	err error

	refs      atomic.Int32
	published atomic.Bool // a transaction may have named it
	named     atomic.Bool // one has
	doubt     atomic.Bool // one may have named the blob of before a retarget
	parts     []blobPart  // dropped when done
}

type blobPart struct {
	chunk *chunk
	data  []byte
}

// pieces are sorted and do not overlap.
type pieces []*piece

// find returns the index of the first piece that ends behind off.
func (ps pieces) find(off int64) int {
	return sort.Search(len(ps), func(i int) bool { return ps[i].end() > off })
}

func (ps pieces) end() int64 {
	if len(ps) == 0 {
		return 0
	}
	return ps[len(ps)-1].end()
}

// splitPiece cuts ps[i] in two at off, which lies within it.
func (of *openFile) splitPiece(i int, off int64) {
	left := of.pieces[i]
	right := *left
	k := off - left.off
	right.off, right.len, right.upOff = off, left.len-k, left.upOff+k
	left.len = k
	if left.chunk != nil {
		left.data, right.data = left.data[:k:k], left.data[k:]
		left.chunk.refs++
	}
	if left.up != nil {
		left.up.refs.Add(1)
	}
	of.pieces = append(of.pieces, nil)
	copy(of.pieces[i+2:], of.pieces[i+1:])
	of.pieces[i+1] = &right
}

// cutPieces removes all pieces within [from, to) and returns the index where
// a piece for that range belongs.
func (of *openFile) cutPieces(from, to int64) int {
	i := of.pieces.find(from)
	if i < len(of.pieces) && of.pieces[i].off < from {
		of.splitPiece(i, from)
		i++
	}
	j := i
	for j < len(of.pieces) && of.pieces[j].off < to {
		if of.pieces[j].end() > to {
			of.splitPiece(j, to)
		}
		of.freePiece(of.pieces[j])
		j++
	}
	if i < j {
		of.pieces = append(of.pieces[:i], of.pieces[j:]...)
	}
	return i
}

func (of *openFile) freePiece(p *piece) {
	if p.chunk != nil {
		of.releaseChunk(p.chunk)
	}
	if p.up != nil {
		of.fs.releaseBlobUpload(p.up)
	}
}

func (of *openFile) releaseChunk(c *chunk) {
	if c.refs--; c.refs == 0 {
		of.fs.dirty.put(c)
	}
}

// insertPiece puts p at index i.
func (of *openFile) insertPiece(i int, p *piece) {
	of.pieces = append(of.pieces, nil)
	copy(of.pieces[i+1:], of.pieces[i:])
	of.pieces[i] = p
}

// flushItem is one new extent of a flush: part of an upload, or small pieces.
type flushItem struct {
	off, len int64
	up       *blobUpload
	upOff    int64
	small    [][]byte // consecutive; else
}

func (it *flushItem) end() int64 { return it.off + it.len }

// item is what becomes of it in the content.
func (it *flushItem) item() content.Item {
	x := content.Item{Off: it.off, Len: it.len, Small: it.small}
	if it.up != nil {
		x.Blob, x.BlobOff = content.Blob{Seq: it.up.id.Seq, Size: it.up.size, CRC: it.up.crc}, it.upOff
	}
	return x
}

// flushPos is how far a flush came.
type flushPos struct {
	item int
	off  int64
}

// storedUpTo marks the blobs that a transaction has named: they stay, wherever the rest
// of the flush goes.
func (p *flushPlan) storedUpTo(pos flushPos) {
	for i := range p.items {
		if u := p.items[i].up; u != nil && (i < pos.item || i == pos.item && pos.off > p.items[i].off) {
			u.published.Store(true)
			u.named.Store(true)
		}
	}
}

// moveTo moves the items, which one transaction stores, so that the first begins at off.
func (p *flushPlan) moveTo(off int64) int64 {
	for by, i := off-p.items[0].off, 0; i < len(p.items); i++ {
		p.items[i].off += by
	}
	return off
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

// splice puts what is stored of n bytes at off into the pipe w, and returns how many.
func (of *openFile) splice(ctx context.Context, w int, off, n int64) (done int64, err error) {
	if err := of.rlock(ctx); err != nil {
		return 0, err
	}
	snap := of.snap
	n = min(n, of.size()-off)
	i := of.pieces.find(off)
	if off < 0 || n <= 0 || off+n > snap.reader.Size() || i < len(of.pieces) && of.pieces[i].off < off+n {
		of.mu.RUnlock()
		return 0, cluster.ErrNoSplice
	}
	snap.refs.Add(1)
	defer snap.release()
	of.mu.RUnlock()
	for done < n {
		k, err := snap.reader.Splice(w, off+done, n-done)
		if err != nil {
			return 0, err
		}
		done += k
	}
	return done, nil
}

// errTried means that a flush before, whose outcome was not known, stored some of the pieces.
var errTried = errors.New("vfs: some of what is to be stored is stored already")

// triedPiece is the beginning of a piece that a flush may have stored (piece.tried).
type triedPiece struct {
	mark keptMark
	off  int64
}

// noted reports whether a transaction that may have stored some of a plan noted that.
func (of *openFile) noted(plan *flushPlan) bool {
	return plan.named && len(plan.kept) > 0 && !of.fs.feed.Complete()
}

// noteKept leaves in the transaction that stores a plan up to pos which bytes its Keepers need
// not keep, for the case that the process ends before they are told, or does not learn the
// outcome. Where no other process writes, to store them again does no harm.
func (of *openFile) noteKept(n *record.Inode, plan *flushPlan, pos flushPos) {
	if of.fs.feed.Complete() {
		return
	}
	upTo := pos.off // pieces are in the order of their offsets
	if pos.item == len(plan.items) {
		upTo = record.StoredWhole
	}
	for _, k := range plan.kept {
		n.Stored.Note(record.StoredWrites{Keeper: k.by.ID(), Seq: k.seq, UpTo: upTo})
	}
}

// storedIn reports whether a piece of the plan is stored in n by a flush before.
func (p *flushPlan) storedIn(n *record.Inode) bool {
	return slices.ContainsFunc(p.tried, func(x triedPiece) bool {
		return n.Stored.Before(x.mark.by.ID(), x.mark.seq) > x.off
	})
}

// thaw has the pieces of a plan that failed change again, but for those that may be stored
// nevertheless. Under mu.
func (of *openFile) thaw(plan *flushPlan) {
	noted := of.noted(plan)
	for _, p := range of.pieces {
		if noted && p.captured && p.tried == nil {
			p.tried = &plan.kept[len(plan.kept)-1]
		}
		p.captured = false
	}
	if noted || len(plan.tried) > 0 {
		of.gen.Add(1) // the next snapshot may know
	}
}

// leaveOut drops the pieces that a flush before has stored although it failed: others may have
// changed these bytes since. It reports whether nothing is left.
func (of *openFile) leaveOut(ctx context.Context) bool {
	if of.fs.feed.Complete() {
		return false
	}
	of.mu.RLock()
	tried := slices.ContainsFunc(of.pieces, func(p *piece) bool { return p.tried != nil })
	of.mu.RUnlock()
	if !tried || of.lock(ctx) != nil { // the next to lock gets the error, too
		return false
	}
	defer of.mu.Unlock()
	for _, p := range slices.Clone(of.pieces) {
		if p.tried == nil {
			continue
		}
		if upTo := of.snap.inode.Stored.Before(p.tried.by.ID(), p.tried.seq); upTo > p.off {
			of.cutPieces(p.off, min(upTo, p.end()))
		}
	}
	if len(of.pieces) > 0 {
		return false
	}
	of.writes, of.killPriv, of.dirtyNS, of.pieces = 0, false, 0, nil
	return true
}
