package content

import (
	"ogw/cluster"
	"ogw/vfs/internal/extents"
	"ogw/vfs/internal/record"
)

// Item is one new extent of a content: a range of a blob, or small pieces of bytes
// that follow one another.
type Item struct {
	Off, Len int64
	Small    [][]byte // bytes; nil for a blob
	Blob     Blob
	BlobOff  int64 // in the blob
}

// Blob is a blob that is stored and belongs to the content.
type Blob struct {
	Seq  uint64
	Size int64
	CRC  uint64
}

// End is the offset behind the item.
func (it *Item) End() int64 { return it.Off + it.Len }

// StoreItem replaces what lies under it in n's content, which must be writable,
// from offset off on, and returns up to where it came and how many extents it
// replaced. The caller moves n's size and version and stores it.
func (ch *Change) StoreItem(t cluster.Txn, n *record.Inode, it *Item, off int64, b Bounds) (done int64, cut int, err error) {
	if it.Small != nil {
		return ch.storeSmall(t, n, it, off, b)
	}
	done, cut, err = ch.cut(t, n, off, it.End(), b)
	if err != nil {
		return off, cut, err
	}
	e := record.Extent{Off: it.Off, Len: it.Len, Kind: record.ExtentBlob, Seq: it.Blob.Seq, BlobOff: it.BlobOff, BlobSize: it.Blob.Size, BlobCRC: it.Blob.CRC}
	e = e.Slice(off, done)
	ch.touch(n.Content)
	if off > it.Off { // a transaction before stored the beginning
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
	return done, cut, t.Set(record.ExtentKey(n.Content, e.Off), e.Encode())
}

// mergeBytes bounds what small pieces are merged to in a file that is larger than
// one inline extent: a page, so that whoever changes pages one at a time has each
// stored by itself, and lines of a log become no more extents than pages.
const mergeBytes = 4 << 10

// storeSmall stores small pieces as one inline extent, together with inline
// neighbours, so that a log of short lines does not become thousands of
// extents. One that is there already with the same range is overwritten.
func (ch *Change) storeSmall(t cluster.Txn, n *record.Inode, it *Item, off int64, b Bounds) (done int64, cut int, err error) {
	data := make([]byte, 0, it.Len)
	for _, p := range it.Small {
		data = append(data, p...)
	}
	data = data[off-it.Off:]
	from, end := off, it.End()
	if !b.New {
		if same, err := inlineAt(t, n.Content, off, int64(len(data))); err != nil {
			return off, 0, err
		} else if same {
			ch.touch(n.Content)
			return end, 1, putInline(t, n.Content, off, data)
		}
		if from, data, err = ch.mergeInline(t, n, from, data); err != nil {
			return off, 0, err
		}
	}
	mergedEnd := from + int64(len(data))
	to, cut, err := ch.cut(t, n, from, mergedEnd, b)
	if err != nil {
		return off, cut, err
	}
	if to < mergedEnd { // too many extents below it for this transaction
		data = data[:to-from]
		end = min(end, to)
	}
	n.Used += int64(len(data))
	ch.touch(n.Content)
	return end, cut, putInline(t, n.Content, from, data)
}

// inlineAt reports whether an inline extent of c is exactly [off, off+length), whose
// bytes need not be read.
func inlineAt(r cluster.Reader, c record.ContentID, off, length int64) (bool, error) {
	head, n, err := r.Head(record.ExtentKey(c, off))
	return err == nil && record.InlineBytes(head, n) == length, err
}

func putInline(t cluster.Txn, c record.ContentID, off int64, data []byte) error {
	e := record.Extent{Off: off, Len: int64(len(data)), Kind: record.ExtentInline, Data: data}
	return t.Set(record.ExtentKey(c, off), e.Encode())
}

// mergeInline returns data for off with the bytes of the inline extents that
// overlap or touch it, as far as the whole stays within InlineBytes if that holds
// the file, and else within mergeBytes.
func (ch *Change) mergeInline(t cluster.Txn, n *record.Inode, off int64, data []byte) (int64, []byte, error) {
	limit, end := int64(ch.s.InlineBytes), off+int64(len(data))
	if max(n.Size, end) > limit {
		limit = min(limit, mergeBytes)
	}
	if end-off >= limit {
		return off, data, nil
	}
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
