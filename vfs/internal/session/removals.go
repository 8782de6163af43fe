package session

import (
	"context"

	"ogw/vfs/internal/record"
)

// Removals are the inodes whose last link a transaction removes: who opens or
// holds one of them waits for the outcome. It is an
// effect of the transaction: one of Again, Failed and Committed is called when
// that is over.
type Removals struct {
	t    *Table
	inos []record.Ino
}

// Removals begins a transaction's.
func (t *Table) Removals() Removals { return Removals{t: t} }

// Begin reports whether ino is open or held: then it must stay, as an orphan. If
// not, who opens or holds it waits until the transaction is over.
func (r *Removals) Begin(ino record.Ino) (used bool) {
	s := r.t.shard(ino)
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.t.used(s, ino) {
		s.orphans[ino] = struct{}{}
		return true
	}
	s.unlinking.begin(ino)
	r.inos = append(r.inos, ino)
	return false
}

// Again ends an attempt that another one follows.
func (r *Removals) Again() { r.end() }

// Failed ends a transaction that removed nothing.
func (r *Removals) Failed() { r.end() }

// Committed ends a transaction that removed them, or may have.
func (r *Removals) Committed(context.Context, bool) { r.end() }

func (r *Removals) end() {
	t := r.t
	for _, ino := range r.inos {
		s := t.shard(ino)
		s.mu.Lock()
		t.removed[ino%leftSlots].Store(t.removals.Add(1))
		s.unlinking.end(ino)
		s.mu.Unlock()
	}
}
