package record

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"ogw/vfs/internal/fserr"
)

// QueueEntry is a deletion that waits for the collector (key 'q').
//
// Value: kind (1 byte), content (uvarint); of a blob also its sequence number
// (uvarint), and where and how long it was when it was written (uvarints),
// which is where an extent that names it would be; of a content also Version (uvarint), if
// that is known; of a hold also the number of
// the content that is held (uvarint). The number in the key is that of the blob or
// the content, which are never used twice; of a hold, that of the content that is
// held with its halves exchanged, xor that of the other.
type QueueEntry struct {
	TimeNS  int64 // when it was queued, which gives the queue its order; part of the key
	Kind    QueueKind
	Content ContentID
	Seq     uint64 // blob; of QueueHold, the content that is held
	Origin  int64
	Size    int64
	// Version is that of the inode which had the content last, when it had it, for
	// readers at other gateways (Content.Version). 0 where there are none.
	Version uint64
}

type QueueKind byte

const (
	// QueueContent: a whole content: its extents, their blobs, and its hold
	// on other contents.
	QueueContent QueueKind = 1
	// QueueBlob: one blob that a partly overwritten content no longer names.
	QueueBlob QueueKind = 2
	// QueueUpload: the parts of an upload that ended (the number is the
	// upload's), with the blobs and holds that its content does not name.
	QueueUpload QueueKind = 3
	// QueueHold: a hold of the content on another, which may have lost the last
	// extent that needs it.
	QueueHold QueueKind = 4
)

func (e *QueueEntry) Key() []byte {
	id := uint64(e.Content)
	switch e.Kind {
	case QueueBlob:
		id = e.Seq
	case QueueHold:
		id ^= bits.RotateLeft64(e.Seq, 32)
	}
	return QueueKey(e.TimeNS, id)
}

func (e *QueueEntry) Encode() []byte {
	b := binary.AppendUvarint([]byte{byte(e.Kind)}, uint64(e.Content))
	if e.Kind == QueueHold {
		b = binary.AppendUvarint(b, e.Seq)
	}
	if e.Kind == QueueBlob {
		b = binary.AppendUvarint(b, e.Seq)
		b = binary.AppendUvarint(b, uint64(e.Origin))
		b = binary.AppendUvarint(b, uint64(e.Size))
	}
	if e.Kind == QueueContent && e.Version > 0 {
		b = binary.AppendUvarint(b, e.Version)
	}
	return b
}

func DecodeQueueEntry(k, v []byte) (e QueueEntry, err error) {
	if len(k) != 17 || k[0] != TabQueue {
		return e, fmt.Errorf("%w: queue key %x", fserr.ErrCorrupt, k)
	}
	e.TimeNS = int64(binary.BigEndian.Uint64(k[1:]))
	d := Decoder{B: v, What: "queue"}
	e.Kind = QueueKind(d.Byte())
	e.Content = ContentID(d.Uint())
	switch e.Kind {
	case QueueUpload:
	case QueueContent:
		if len(d.B) > 0 {
			e.Version = d.Uint()
		}
	case QueueHold:
		e.Seq = d.Uint()
	case QueueBlob:
		e.Seq, e.Origin, e.Size = d.Uint(), int64(d.Uint()), int64(d.Uint())
		if e.Origin < 0 || e.Size < 0 || e.Origin > MaxFileBytes-e.Size {
			d.Fail()
		}
	default:
		d.Fail()
	}
	return e, d.End()
}
