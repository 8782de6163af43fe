package vfs

import (
	"encoding/binary"
	"fmt"

	"ogw/cluster"
)

// queueEntry is a deletion that waits for the collector (key 'q').
//
// Value: kind (1 byte), content (uvarint); of a blob also its sequence number
// (uvarint), and where and how long it was when it was written (uvarints),
// which is where an extent that names it would be. The number in the key is that of the blob or the content, which
// are never used twice.
type queueEntry struct {
	dueNS   int64 // part of the key
	kind    queueKind
	content ContentID
	seq     uint64 // blob
	origin  int64
	size    int64
}

type queueKind byte

const (
	// queueContent: a whole content: its extents, their blobs, and its hold
	// on other contents.
	queueContent queueKind = 1
	// queueBlob: one blob that a partly overwritten content no longer names.
	queueBlob queueKind = 2
	// queueUpload: the parts of an upload that ended (the number is the
	// upload's), with the blobs and holds that its content does not name.
	queueUpload queueKind = 3
)

func (e *queueEntry) key() []byte {
	id := uint64(e.content)
	if e.kind == queueBlob {
		id = e.seq
	}
	return queueKey(e.dueNS, id)
}

func (e *queueEntry) encode() []byte {
	b := binary.AppendUvarint([]byte{byte(e.kind)}, uint64(e.content))
	if e.kind == queueBlob {
		b = binary.AppendUvarint(b, e.seq)
		b = binary.AppendUvarint(b, uint64(e.origin))
		b = binary.AppendUvarint(b, uint64(e.size))
	}
	return b
}

func decodeQueueEntry(k, v []byte) (e queueEntry, err error) {
	if len(k) != 17 || k[0] != tabQueue {
		return e, fmt.Errorf("%w: queue key %x", ErrCorrupt, k)
	}
	e.dueNS = int64(binary.BigEndian.Uint64(k[1:]))
	d := decoder{b: v, what: "queue"}
	e.kind = queueKind(d.byte())
	e.content = ContentID(d.uint())
	switch e.kind {
	case queueContent, queueUpload:
	case queueBlob:
		e.seq, e.origin, e.size = d.uint(), int64(d.uint()), int64(d.uint())
		if e.origin < 0 || e.size < 0 || e.origin > MaxFileBytes-e.size {
			d.fail()
		}
	default:
		d.fail()
	}
	return e, d.end()
}

// enqueue puts e into the queue, due after the grace period.
func (o *op) enqueue(t cluster.Txn, e queueEntry) error {
	e.dueNS = o.nowNS + int64(o.fs.cfg.Grace)
	return t.Set(e.key(), e.encode())
}
