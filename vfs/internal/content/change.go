package content

import (
	"context"
	"encoding/binary"
	"math/rand/v2"

	"ogw/cluster"
	"ogw/vfs/internal/record"
)

// Change is what one transaction does to contents. It notes which of them change
// in place, and whose staging ends: it is an effect of the transaction, and one
// of Again, Failed and Committed is called when that is over.
type Change struct {
	s     *Store
	op    Operation
	nowNS int64

	inPlace   []record.ContentID // see extents.Pins
	published []record.ContentID
	sameBytes bool // extents change, and what they hold does not
}

// Operation is the operation that a Change is part of.
type Operation interface {
	// InodeChanged notes a change of an inode and, with data, of its content.
	InodeChanged(ino record.Ino, data bool)
	// Stored notes that an inode's content is stored in another way, and that
	// nobody sees a change.
	Stored(ino record.Ino)
}

// Begin returns the Change of op, whose clock stands at nowNS.
func (s *Store) Begin(op Operation, nowNS int64) Change { return Change{s: s, op: op, nowNS: nowNS} }

// Enqueue puts e into the collector's queue.
func (ch *Change) Enqueue(t cluster.Txn, e record.QueueEntry) error {
	e.TimeNS = ch.nowNS
	return t.Set(e.Key(), e.Encode())
}

// touch notifies the readers of c in this process that it changes in place, from
// before the commit until the transaction is over.
func (ch *Change) touch(c record.ContentID) {
	if ch.sameBytes {
		return
	}
	ch.s.Pins.Begin(c)
	ch.inPlace = append(ch.inPlace, c)
}

// Again ends an attempt that another one follows.
func (ch *Change) Again() { ch.Failed() }

// Failed ends a transaction that changed nothing.
func (ch *Change) Failed() { ch.s.Pins.End(ch.inPlace) }

// Committed ends a transaction that made the changes, or may have.
func (ch *Change) Committed(context.Context, bool) {
	ch.s.Pins.End(ch.inPlace)
	for _, c := range ch.published {
		ch.s.Staged.Remove(c)
	}
}

// hold makes user hold source. The value distinguishes this hold from one that is made
// again later: who saw no reference to source releases none that came since.
func hold(t cluster.Txn, source, user record.ContentID) error {
	return t.Set(record.RefKey(source, user), binary.BigEndian.AppendUint64(nil, rand.Uint64()))
}

// HoldAgain makes user hold source, whose hold or record was lost. Nobody knows whether an
// inode has source too, so the record says that one does: what is held in vain is found by a
// check, what is not held goes.
func (ch *Change) HoldAgain(t cluster.Txn, source, user record.ContentID) error {
	v, err := t.Get(record.ContentKey(source))
	if err == nil && v == nil {
		err = t.Set(record.ContentKey(source), record.Content{Held: true}.Encode())
	}
	if err != nil {
		return err
	}
	return hold(t, source, user)
}
