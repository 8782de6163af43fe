package vfs

import (
	"bytes"

	"ogw/vfs/internal/record"

	"ogw/cluster"
)

const (
	// extentPage is how many extents are loaded at once: 64 GiB of whole
	// blobs, some 100 KiB of memory.
	extentPage = 1024
	// extentPageInline bounds the inline bytes that one page brings along.
	extentPageInline = 1 << 20
	// readPageInline is that for reads in order. Others get one inline extent
	// at the most: a file that was overwritten here and there is read here and
	// there, too.
	readPageInline = 64 << 10
	// limitedTxnExtents is how many extents one transaction stores in an
	// engine with limits: half of etcd's 128 operations, and 1 MiB if all of
	// them are inline.
	limitedTxnExtents = 64
	// roomyTxnBytes: an engine that takes so much in one transaction has room
	// for unlimitedTxnExtents inline extents, twice.
	roomyTxnBytes = 32 << 20
	// unlimitedTxnExtents keeps transactions in engines without limits short.
	unlimitedTxnExtents = 1024
)

// txnExtents is how many extents one transaction may store.
func (fs *FS) txnExtents() int {
	if l := fs.kv.Limits(); l.Ops > 0 || l.Bytes > 0 && l.Bytes < roomyTxnBytes {
		return limitedTxnExtents
	}
	return unlimitedTxnExtents
}

// loadExtents returns the extents of c that overlap [from, to) in order, at
// most limit and no more than extentPageInline inline bytes; more tells that
// there are others behind the last.
func loadExtents(r cluster.Reader, c ContentID, from, to int64, limit int) (list []record.Extent, more bool, err error) {
	return loadExtentPage(r, c, from, to, limit, extentPageInline)
}

// loadExtentPage is loadExtents with another bound of the inline bytes.
func loadExtentPage(r cluster.Reader, c ContentID, from, to int64, limit, maxInline int) (list []record.Extent, more bool, err error) {
	if c == 0 || from >= to {
		return nil, false, nil
	}
	if from == 0 {
		// Most contents are one extent, and a lookup is cheaper than a scan.
		v, err := r.Get(record.ExtentKey(c, 0))
		if err != nil {
			return nil, false, err
		}
		if v != nil {
			e, err := record.DecodeExtent(0, v)
			if err != nil || e.End() >= to {
				return []record.Extent{e}, false, err
			}
		}
	}
	add := func(k, v []byte) error {
		_, off, err := record.ParseExtentKey(k)
		if err != nil {
			return err
		}
		e, err := record.DecodeExtent(off, v)
		if err != nil {
			return err
		}
		if e.Kind == record.ExtentInline {
			e.Data = bytes.Clone(e.Data)
		}
		list = append(list, e)
		return nil
	}
	if from > 0 {
		o := cluster.ScanOptions{Limit: 1, Reverse: true}
		if err := r.Scan(record.ExtentPrefix(c), record.ExtentKey(c, from), o, add); err != nil {
			return nil, false, err
		}
		if len(list) == 1 && list[0].End() <= from {
			list = list[:0]
		}
	}
	inline := 0
	err = r.Scan(record.ExtentKey(c, from), record.ExtentKey(c, to), cluster.ScanOptions{}, func(k, v []byte) error {
		if len(list) >= limit || len(list) > 0 && inline > maxInline {
			more = true
			return cluster.ErrStop
		}
		if err := add(k, v); err != nil {
			return err
		}
		inline += len(list[len(list)-1].Data)
		return nil
	})
	return list, more, err
}

func allInline(list []record.Extent) bool {
	for i := range list {
		if list[i].Kind != record.ExtentInline {
			return false
		}
	}
	return true
}

func hasRefs(list []record.Extent) bool {
	for i := range list {
		if list[i].Kind == record.ExtentRef {
			return true
		}
	}
	return false
}

func anyKey(r cluster.Reader, prefix []byte) (found bool, err error) {
	err = r.Scan(prefix, cluster.PrefixEnd(prefix), cluster.ScanOptions{Limit: 1, KeysOnly: true},
		func(_, _ []byte) error { found = true; return nil })
	return found, err
}
