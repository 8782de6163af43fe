package session

import (
	"context"

	"ogw/vfs/internal/record"
)

// Move is an operation of this process that moves the end of a file: a new size, or bytes
// behind the end. From BeginMove on, who is about to write to the file through a File waits
// (Table.Moving): one who asks, and puts bytes into the File, under one lock of that has put
// them there before who takes this lock after BeginMove, or waits. That includes Files that are
// opened meanwhile.
//
// It is an effect of the operation's transaction, which ends it before anybody is notified: a
// kernel that is told to drop pages may have to write one first.
type Move struct {
	t         *Table
	ino       record.Ino
	committed func(known bool)
	ended     bool
}

// BeginMove begins one. committed is called, before writers go on, when the transaction
// committed (known), or may have.
func (t *Table) BeginMove(ino record.Ino, committed func(known bool)) *Move {
	s := t.shard(ino)
	s.mu.Lock()
	defer s.mu.Unlock()
	t.moves.Add(1)
	s.moving.begin(ino)
	return &Move{t: t, ino: ino, committed: committed}
}

// End ends it, if nothing else did.
func (m *Move) End() {
	if m.ended {
		return
	}
	m.ended = true
	s := m.t.shard(m.ino)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moving.end(m.ino)
	m.t.moves.Add(-1)
}

// Again ends an attempt that another one follows, for which writers wait, too.
func (m *Move) Again() {}

// Failed ends a transaction that had no effect. The operation ends the Move.
func (m *Move) Failed() {}

// Committed ends a transaction that moved the end, or may have. A nil Move is none.
func (m *Move) Committed(_ context.Context, known bool) {
	if m != nil {
		m.committed(known)
		m.End()
	}
}

// Moving returns what is closed when the operations that move the end of ino are over;
// nil if there are none.
func (t *Table) Moving(ino record.Ino) <-chan struct{} {
	if t.moves.Load() == 0 {
		return nil
	}
	s := t.shard(ino)
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.moving[ino]; m != nil {
		return m.done
	}
	return nil
}
