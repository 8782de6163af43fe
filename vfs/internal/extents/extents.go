package extents

import (
	"bytes"

	"ogw/cluster"
	"ogw/vfs/internal/record"
)

const (
	// PageExtents is how many extents are loaded at once: 64 GiB of whole
	// blobs, some 100 KiB of memory.
	PageExtents = 1024
	// extentPageInline bounds the inline bytes that one page brings along.
	extentPageInline = 1 << 20
	// ReadPageInline is that for reads in order. Others get one inline extent
	// at the most: a file that was overwritten here and there is read here and
	// there, too.
	ReadPageInline = 64 << 10
	// LimitedTxn is how many extents one transaction stores in an
	// engine with limits: half of etcd's 128 operations, and 1 MiB if all of
	// them are inline.
	LimitedTxn = 64
	// roomyTxnBytes: an engine that takes so much in one transaction has room
	// for UnlimitedTxn inline extents, twice.
	roomyTxnBytes = 32 << 20
	// UnlimitedTxn keeps transactions in engines without limits short.
	UnlimitedTxn = 1024
)

// PerTxn is how many extents one transaction may store.
func PerTxn(kv cluster.KV) int {
	if l := kv.Limits(); l.Ops > 0 || l.Bytes > 0 && l.Bytes < roomyTxnBytes {
		return LimitedTxn
	}
	return UnlimitedTxn
}

// OneInline reports whether list is a single inline extent that begins at 0
// and accounts for used bytes: what record.FlagOneInline says of a content.
func OneInline(list []record.Extent, used int64) bool {
	return len(list) == 1 && list[0].Kind == record.ExtentInline && list[0].Off == 0 && list[0].Len == used
}

// Load returns the extents of c that overlap [from, to) in order, at
// most limit and no more than extentPageInline inline bytes; more reports whether
// there are others behind the last.
func Load(r cluster.Reader, c record.ContentID, from, to int64, limit int) (list []record.Extent, more bool, err error) {
	return LoadPage(r, c, from, to, PageBounds{limit, extentPageInline})
}

// PageBounds are those of a page of extents.
type PageBounds struct{ Extents, InlineBytes int }

// LoadPage is Load with other bounds.
func LoadPage(r cluster.Reader, c record.ContentID, from, to int64, b PageBounds) (list []record.Extent, more bool, err error) {
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
		_, e, err := record.ParseExtent(k, v)
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
		if len(list) >= b.Extents || len(list) > 0 && inline > b.InlineBytes {
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

func AllInline(list []record.Extent) bool {
	for i := range list {
		if list[i].Kind != record.ExtentInline {
			return false
		}
	}
	return true
}

func HasRefs(list []record.Extent) bool {
	for i := range list {
		if list[i].Kind == record.ExtentRef {
			return true
		}
	}
	return false
}
