package vfs

import (
	"ogw/cluster"
)

// cutRange removes [from, to) from n's content, which must be writable, at
// most limit extents of it, and returns up to where it came and how many
// extents that were. Blobs that lose
// their last extent go to the queue, unless keep holds their number; sources
// that lose their last reference are released. n.used follows; the caller
// stores n and moves its version.
func (o *op) cutRange(t cluster.Txn, n *inode, from, to int64, limit int, keep map[uint64]bool) (int64, int, error) {
	list, more, err := loadExtents(t, n.content, from, to, max(limit, 1))
	if err != nil {
		return from, 0, err
	}
	if more {
		to = min(to, list[len(list)-1].end())
	}
	if len(list) == 0 {
		return to, 0, nil
	}
	o.touch(n.content)
	alive := make(map[uint64]bool)      // blobs of which a piece is kept
	sources := make(map[ContentID]bool) // false: no piece is kept as far as known
	for i := range list {
		if err := o.cutExtent(t, n, &list[i], from, to, alive, sources); err != nil {
			return from, 0, err
		}
	}
	for i := range list {
		e := &list[i]
		if e.kind != extentBlob || alive[e.seq] || keep[e.seq] {
			continue
		}
		alive[e.seq] = true // ask once
		if err := o.dropBlobIfUnnamed(t, n.content, e); err != nil {
			return from, 0, err
		}
	}
	for source, kept := range sources {
		if kept {
			continue
		}
		if err := o.releaseIfUnnamed(t, n.content, source); err != nil {
			return from, 0, err
		}
	}
	return to, len(list), nil
}

// cutExtent takes [from, to) out of e.
func (o *op) cutExtent(t cluster.Txn, n *inode, e *extent, from, to int64, alive map[uint64]bool, sources map[ContentID]bool) error {
	cut := e.clip(from, to)
	n.used = max(0, n.used-cut.len)
	kept := false
	if e.off >= from {
		if err := t.Delete(extentKey(n.content, e.off)); err != nil {
			return err
		}
	} else {
		left := e.slice(e.off, from)
		if err := t.Set(extentKey(n.content, left.off), left.encode()); err != nil {
			return err
		}
		kept = true
	}
	if e.end() > to {
		right := e.slice(to, e.end())
		if err := t.Set(extentKey(n.content, right.off), right.encode()); err != nil {
			return err
		}
		kept = true
	}
	switch e.kind {
	case extentBlob:
		alive[e.seq] = alive[e.seq] || kept
	case extentRef:
		sources[e.src] = sources[e.src] || kept
	}
	return nil
}

// dropBlobIfUnnamed queues e's blob unless another extent of content c names
// it. Such an extent lies where the blob was written at first: extents are
// cut, never moved within their content.
func (o *op) dropBlobIfUnnamed(t cluster.Txn, c ContentID, e *extent) error {
	origin := max(e.off-e.blobOff, 0)
	if e.len < e.blobSize {
		named, err := blobNamed(t, c, e.seq, origin, e.blobSize)
		if err != nil || named {
			return err
		}
	}
	return o.enqueue(t, queueEntry{kind: queueBlob, content: c, seq: e.seq, origin: origin, size: e.blobSize})
}

// blobNamed tells whether an extent of c within [origin, origin+size) names
// the blob.
func blobNamed(r cluster.Reader, c ContentID, seq uint64, origin, size int64) (named bool, err error) {
	err = r.Scan(extentKey(c, origin), extentKey(c, origin+size), cluster.ScanOptions{}, func(k, v []byte) error {
		_, off, err := parseExtentKey(k)
		if err != nil {
			return err
		}
		x, err := decodeExtent(off, v)
		if err != nil {
			return err
		}
		if x.kind == extentBlob && x.seq == seq {
			named = true
			return cluster.ErrStop
		}
		return nil
	})
	return named, err
}

// releaseIfUnnamed ends c's hold on source if no extent of c names it. It
// looks at all extents of c: a hold that outlived its extents would keep the
// source for good.
func (o *op) releaseIfUnnamed(t cluster.Txn, c, source ContentID) error {
	named := false
	err := t.Scan(extentPrefix(c), extentPrefix(c+1), cluster.ScanOptions{}, func(k, v []byte) error {
		_, off, err := parseExtentKey(k)
		if err != nil {
			return err
		}
		e, err := decodeExtent(off, v)
		if err == nil && e.kind == extentRef && e.src == source {
			named = true
			err = cluster.ErrStop
		}
		return err
	})
	if err != nil || named {
		return err
	}
	return o.releaseRef(t, source, c)
}

// touch tells the readers of c in this process that it changes in place, from
// before the commit until the transaction is over.
func (o *op) touch(c ContentID) {
	if o.sameBytes {
		return
	}
	o.fs.pins.begin(c)
	o.changedIn = append(o.changedIn, c)
}
