package session

import (
	"math/rand/v2"
	"time"
)

// Session is this process among those that use a store.
type Session struct {
	Readers Readers
	Open    Table

	id    uint64
	alone bool
}

// New begins a session. alone reports whether no other process uses the store while
// this one does. store is asked about inodes and notified of them.
func New(alone bool, store Inodes) *Session {
	s := &Session{id: rand.Uint64(), alone: alone}
	s.Readers.init()
	s.Open.init(store)
	return s
}

// ID distinguishes what this process left in the store from what others did.
func (s *Session) ID() uint64 { return s.id }

// Alone reports whether all other processes that used the store are gone.
func (s *Session) Alone() bool { return s.alone }

// Gone reports whether whoever left something in the store and last said so age
// ago does not need it any more, as far as others than this process are
// concerned. Who is alive says so again within grace.
func (s *Session) Gone(id uint64, age, grace time.Duration) bool {
	return s.alone || id == s.id || age > grace
}

// Renew reports whether this process has to say again that it needs something,
// age after it did last.
func (s *Session) Renew(age, grace time.Duration) bool { return !s.alone && age > grace/4 }
