package session

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"ogw/cluster"
	"ogw/cluster/pause"
	"ogw/vfs/internal/record"
)

// Session is this process among those that use a store.
type Session struct {
	Readers Readers
	Open    Table

	id    uint64
	lease *Lease // nil: no other process uses the store
}

// New begins a session of who has the store to itself, where beside is nil, or uses it
// beside others. store is asked about inodes and notified of them.
func New(beside *Lease, store Inodes) *Session {
	s := &Session{id: rand.Uint64(), lease: beside}
	if beside != nil {
		s.id = beside.me.ID
	}
	s.Readers.init()
	s.Open.init(store)
	return s
}

// ID distinguishes what this process left in the store from what others did.
func (s *Session) ID() uint64 { return s.id }

// Alone reports whether no other process can use the store while this one does.
func (s *Session) Alone() bool { return s.lease == nil }

// Leads reports whether this process does what one has to do for all that use the
// store.
func (s *Session) Leads() bool { return s.lease == nil || s.lease.Leads() }

// Answered notes whether the blobs answer this process: while they do not, one that they
// answer leads.
func (s *Session) Answered(ok bool) {
	if s.lease != nil {
		s.lease.unable.Store(!ok)
	}
}

// Lead runs fn for as long as this process leads, with a context that ends then, and
// again when it leads again, until ctx ends.
func (s *Session) Lead(ctx context.Context, fn func(ctx context.Context)) {
	if s.lease == nil {
		fn(ctx)
		return
	}
	for ; ctx.Err() == nil; _ = pause.For(ctx, BeatEvery) {
		if !s.Leads() {
			continue
		}
		leading, end := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			fn(leading)
		}()
		for s.Leads() && pause.For(ctx, BeatEvery) == nil {
		}
		end()
		<-done
	}
}

// Pin has others spare the contents that pins hold. It comes before the first is read.
func (s *Session) Pin(pins Pins) {
	if s.lease != nil {
		s.lease.reads.attach(&s.Readers, pins, &s.Open)
	}
}

// OnCrowded has letGo called, now and then, while there are more contents than this process can
// name to others: files that are open, and not being read, need not pin theirs.
func (s *Session) OnCrowded(letGo func()) {
	if s.lease != nil {
		s.lease.reads.onCrowded(letGo)
	}
}

// Restored has others told what this process uses, where Gateway.Restores kept them from
// that. It comes when all is in Open that a process before had in use.
func (s *Session) Restored() {
	if s.lease != nil {
		s.lease.reads.restored()
	}
}

// Number has others spare what this process takes numbers for and does not name yet. It
// comes before the first is taken.
func (s *Session) Number(n Numbers) {
	if s.lease != nil {
		s.lease.reads.number(n)
	}
}

// Doubt has settled called when no transaction of this process can commit any more that
// began before: one has ended without an answer. Alone, nothing is called.
func (s *Session) Doubt(settled func()) {
	if s.lease != nil {
		s.lease.reads.doubt(settled)
	}
}

// Rules returns those by which all gateways beside this one go, and who comes (record.RulesVersion).
// To be asked of one that is beside others.
func (s *Session) Rules() uint16 { return s.lease.Rules() }

// Stay has the fence of this process outlast its end, as a crash does, until the others have
// seen it stand still: what it vouches for is to be taken over by the process after it.
func (s *Session) Stay() {
	if s.lease != nil {
		s.lease.stays.Store(true)
	}
}

// Waits returns a number: what has a smaller one, and nothing names, is to be removed
// when Left has passed that. Numbers of this process that are smaller keep it. It is as
// the last beat found it, 0 for nothing.
func (s *Session) Waits() uint64 {
	if s.lease == nil {
		return 0
	}
	return s.lease.reads.waits()
}

// settleTimeout is longer than it takes until a gateway that stands still is put out.
const settleTimeout = 3 * EvictAfter

// ErrReading is that of Settle after settleTimeout.
var ErrReading = fmt.Errorf("what was deleted stays: a read that began before it, such as a backup, has gone on for %v", settleTimeout)

// Held is what others go on using.
type Held struct {
	Contents map[record.ContentID]bool
	Inodes   map[record.Ino]bool
}

// Settle waits until no read is under way that began before the call, but those of the
// contents that it returns, and of those that this process pins; and until none but the
// inodes that it returns, and those that this process has open or holds, is in use
// anywhere of those that have lost their last link before the call.
//
// It waits for settleTimeout at the most, so that it is tried again later: ErrReading.
func (s *Session) Settle(ctx context.Context) (held Held, err error) {
	bounded, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	if s.lease == nil {
		err = s.Readers.Quiesce(bounded)
	} else {
		held, err = s.lease.Settle(bounded)
	}
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		err = ErrReading
	}
	return held, err
}

// Reading begins a read that takes as long as it takes until over is called: what is named
// when it begins, no process removes before. Where no other process uses the store nobody
// waits for it: a content.Hold has the collector spare less.
func (s *Session) Reading() (over func()) {
	if s.lease == nil {
		return func() {}
	}
	epoch := s.Readers.Enter()
	return func() { s.Readers.Leave(epoch) }
}

// Left returns a number. What has a smaller one, and neither is stored nor in use in
// this process, was left by a process that is gone.
func (s *Session) Left(r cluster.Reader) (before uint64, err error) {
	if s.lease == nil {
		return math.MaxUint64, nil
	}
	return s.lease.First(r)
}

// Gone reports whether a process that left something in the store is gone.
func (s *Session) Gone(r cluster.Reader, id uint64) (bool, error) {
	if s.lease == nil || id == s.id {
		return true, nil
	}
	alive, err := s.lease.Alive(r, id)
	return !alive, err
}

// Peers returns the gateways that use the store, as this one saw them last, and none
// where it has the store to itself.
func (s *Session) Peers() []Peer {
	if s.lease == nil {
		return nil
	}
	return s.lease.Peers()
}

// Moment is one of this process: what is read after it was taken is at least as new.
func (s *Session) Moment() cluster.Moment {
	if s.lease == nil {
		return 0
	}
	return s.lease.tells.Moment()
}

// KeepAttr returns for how long a door may keep attributes of an inode that were read since a
// moment, if it drops what is recalled (OnRecall).
func (s *Session) KeepAttr(ino record.Ino, dir bool, since cluster.Moment) time.Duration {
	switch {
	case s.lease == nil:
		return math.MaxInt64
	case dir:
		return s.lease.tells.Keep(since, uint64(ino), record.InodeKey(ino), record.DirTimeKey(ino))
	}
	return s.lease.tells.Keep(since, uint64(ino), record.InodeKey(ino))
}

// OnRecall has recall called with inodes of which some attributes are about to change, and which
// somebody keeps. It comes before the first is kept.
func (s *Session) OnRecall(recall func(inodes []record.Ino)) {
	if s.lease == nil {
		return
	}
	s.lease.tells.OnRecall(func(numbers []uint64) {
		list := make([]record.Ino, len(numbers))
		for i, n := range numbers {
			list[i] = record.Ino(n)
		}
		recall(list)
	})
}

// Forget has this process ask the store for what it has read of it so far, and nobody keep of it
// any more.
func (s *Session) Forget() {
	if s.lease != nil {
		s.lease.tells.Forget()
	}
}
