package content

import (
	"ogw/cluster"
	"ogw/vfs/internal/extents"
	"ogw/vfs/internal/record"
)

// Bounds are those of what one transaction replaces.
type Bounds struct {
	Extents int             // that are replaced at most
	Keep    map[uint64]bool // numbers of blobs that are not dropped; may be nil
	// New is set where this transaction made the content, and no small piece touches
	// what it stored before: then there is nothing to look for.
	New bool
}

// cut removes [from, to) from n's content, which must be writable, within bounds,
// and returns up to where it came and how many extents that were. Blobs that lose
// their last extent go to the queue, and holds on sources that may have lost their
// last reference.
// n.Used follows; the caller stores n and moves its version.
func (ch *Change) cut(t cluster.Txn, n *record.Inode, from, to int64, b Bounds) (int64, int, error) {
	n.Set(record.FlagOneInline, false)
	if b.New {
		return to, 0, nil
	}
	list, more, err := extents.Load(t, n.Content, from, to, max(b.Extents, 1))
	if err != nil {
		return from, 0, err
	}
	if more {
		to = min(to, list[len(list)-1].End())
	}
	if len(list) == 0 {
		return to, 0, nil
	}
	ch.touch(n.Content)
	left := remains{make(map[uint64]bool), make(map[record.ContentID]bool), newUsage(t, ch.s.lookLimit(len(list)))}
	left.used.dense = n.Used >= n.Size
	for i := range list {
		if err := left.cut(t, n, &list[i], from, to); err != nil {
			return from, 0, err
		}
	}
	for i := range list {
		e := &list[i]
		if e.Kind != record.ExtentBlob || left.blobs[e.Seq] || b.Keep[e.Seq] {
			continue
		}
		left.blobs[e.Seq] = true // ask once
		if err := ch.dropBlobIfUnnamed(t, n.Content, e); err != nil {
			return from, 0, err
		}
	}
	for source, kept := range left.sources {
		if kept {
			continue
		}
		if err := ch.releaseLater(t, n.Content, source); err != nil {
			return from, 0, err
		}
	}
	return to, len(list), nil
}

// remains reports for the blobs and the sources that were cut whether a piece of them is
// kept, as far as known.
type remains struct {
	blobs   map[uint64]bool
	sources map[record.ContentID]bool
	used    *usage
}

// cut takes [from, to) out of e, an extent of n.
func (r *remains) cut(t cluster.Txn, n *record.Inode, e *record.Extent, from, to int64) error {
	cut := e.Clip(from, to)
	stored, _, err := r.used.of(&cut)
	if err != nil {
		return err
	}
	n.Used = max(0, n.Used-stored)
	kept := false
	if e.Off >= from {
		if err := t.Delete(record.ExtentKey(n.Content, e.Off)); err != nil {
			return err
		}
	} else {
		left := e.Slice(e.Off, from)
		if err := t.Set(record.ExtentKey(n.Content, left.Off), left.Encode()); err != nil {
			return err
		}
		kept = true
	}
	if e.End() > to {
		right := e.Slice(to, e.End())
		if err := t.Set(record.ExtentKey(n.Content, right.Off), right.Encode()); err != nil {
			return err
		}
		kept = true
	}
	switch e.Kind {
	case record.ExtentBlob:
		r.blobs[e.Seq] = r.blobs[e.Seq] || kept
	case record.ExtentRef:
		r.sources[e.Src] = r.sources[e.Src] || kept
	}
	return nil
}

// askedExtents bounds how many extents a transaction looks at to learn whether one
// of them names a blob: engines with limits count what a scan meets, and the
// callers' budgets have room for so many of each extent that is cut.
const askedExtents = 4

// dropBlobIfUnnamed queues e's blob unless another extent of content c names
// it. Such an extent lies where the blob was written at first: extents are
// cut, never moved within their content. If many lie there, the blob is queued
// though one may name it: the collector looks at all of them.
func (ch *Change) dropBlobIfUnnamed(t cluster.Txn, c record.ContentID, e *record.Extent) error {
	q := record.QueueEntry{Kind: record.QueueBlob, Content: c, Seq: e.Seq, Origin: max(e.Off-e.BlobOff, 0), Size: e.BlobSize}
	if e.Len < e.BlobSize {
		named, err := blobNamed(t, &q, askedExtents)
		if err != nil || named {
			return err
		}
	}
	return ch.Enqueue(t, q)
}

// blobNamed reports whether an extent names the blob of q, among the first limit of
// those that lie where it was written; 0 is no limit.
func blobNamed(r cluster.Reader, q *record.QueueEntry, limit int) (named bool, err error) {
	o := cluster.ScanOptions{Limit: limit}
	err = r.Scan(record.ExtentKey(q.Content, q.Origin), record.ExtentKey(q.Content, q.Origin+q.Size), o, func(k, v []byte) error {
		_, x, err := record.ParseExtent(k, v)
		if err != nil {
			return err
		}
		if x.Kind == record.ExtentBlob && x.Seq == q.Seq {
			named = true
			return cluster.ErrStop
		}
		return nil
	})
	return named, err
}

// limitedCutExtents is how many extents one cuts there: each costs up to nine
// operations.
const limitedCutExtents = 8

// lookLimit is how many extents of sources are looked at to count what so many extents
// use. In engines with limits, one that is cut costs with that what limitedCutExtents says.
func (s *Store) lookLimit(count int) int {
	if extents.PerTxn(s.KV) == extents.LimitedTxn {
		return count * (askedExtents - 1)
	}
	return extents.UnlimitedTxn
}

func (s *Store) cutLimit() int {
	if extents.PerTxn(s.KV) == extents.LimitedTxn {
		return limitedCutExtents
	}
	return extents.UnlimitedTxn
}
