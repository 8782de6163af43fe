package session

import (
	"context"
	"fmt"
	"sync/atomic"

	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

// Holder keeps inodes for a door whose client names them by number for as
// long as it likes, and says when it forgets them: a kernel with its FUSE
// lookups. An inode of any kind that loses its last link while it is held
// becomes an orphan, as open files do, and goes with the last hold. Holds are
// counted, in memory only. Safe for concurrent use.
//
// Code that looks an inode up and then holds it takes a HoldMark before:
//
//	mark := h.Mark()
//	a, err := fs.Lookup(...)
//	err = h.Hold(ctx, a.Ino, 1, mark) // ErrStale: removed in between, look again
type Holder struct {
	t      *Table
	shards [tableShards]holdShard // each under the mutex of the tableShard with its number
	closed atomic.Bool
	forget atomic.Pointer[func([]Unlinked)]
}

// Unlinked is an inode that lost its last link, and where that was, as far as is known.
type Unlinked struct {
	Ino, Dir record.Ino
	Name     string
}

// holdShard counts the holds of each inode, some 25 bytes for one that is
// held. Go's maps do not shrink, so that one which lost most of what it had
// is copied.
type holdShard struct {
	counts map[record.Ino]uint64
	peak   int // of len(counts), since it was made
}

// A holdShard is copied when it has less than 1/holdShrink of its peak, unless
// that was below holdSmall.
const (
	holdShrink = 8
	holdSmall  = 1 << 10
)

// HoldMark is a moment before an inode was looked up.
type HoldMark struct{ removals, asked uint64 }

// NewHolder returns a Holder, to be closed.
func (t *Table) NewHolder() *Holder {
	h := &Holder{t: t}
	t.addHolder(h)
	return h
}

// OnUnlinked has fn called with what is held and not open, and that another process removed:
// nobody else tells the client, which may remember it for days. fn may be called again for what
// is not released, by one goroutine, and must not wait for that.
func (h *Holder) OnUnlinked(fn func(list []Unlinked)) { h.forget.Store(&fn) }

// tell calls the function of OnUnlinked for those of a list that are held.
func (h *Holder) tell(list []Unlinked) {
	fn := h.forget.Load()
	if fn == nil {
		return
	}
	var held []Unlinked
	for _, x := range list {
		s := h.t.shard(x.Ino)
		s.mu.Lock()
		if h.shards[uint64(x.Ino)%tableShards].has(x.Ino) {
			held = append(held, x)
		}
		s.mu.Unlock()
	}
	if len(held) > 0 {
		(*fn)(held)
	}
}

// Mark returns the moment.
func (h *Holder) Mark() HoldMark { return HoldMark{h.t.removals.Load(), h.t.asked.Load()} }

// Hold counts n more holds of ino, which was found after mark. ErrStale if
// this process removed it since, or another process may, since it lost its last link.
func (h *Holder) Hold(ctx context.Context, ino record.Ino, n uint64, mark HoldMark) error {
	t := h.t
	s, err := t.lockUnmarked(ctx, ino)
	if err != nil {
		return err
	}
	// The others may have been told without it: then they spare only what has links. Who
	// else uses it here may be about to find that out, too.
	unnamed := t.asked.Load() != mark.asked
	h.shards[uint64(ino)%tableShards].add(ino, n)
	removed := t.removed[ino%leftSlots].Load() > mark.removals
	s.mu.Unlock()
	if !removed && !unnamed {
		return nil
	}
	// It, or one that shares its slot.
	stored, orphan, err := t.store.Look(ctx, ino)
	if err == nil && (!stored || unnamed && orphan) {
		err = fmt.Errorf("inode %d: %w", ino, fserr.ErrStale)
	}
	if err != nil {
		h.Release(ino, n)
	}
	return err
}

// HoldOpen is Hold of what the caller has open, and need not be found.
func (h *Holder) HoldOpen(ino record.Ino, n uint64) { h.count(ino, n) }

// Release takes back n holds of ino, or all if it has fewer. What nobody
// holds or has open any more, and has no links, is removed in the background. It
// reports whether h holds it no more.
func (h *Holder) Release(ino record.Ino, n uint64) (free bool) {
	s, own := h.t.shard(ino), &h.shards[uint64(ino)%tableShards]
	s.mu.Lock()
	gone := own.drop(ino, n) && h.t.takeOrphan(s, ino)
	free = !own.has(ino)
	s.mu.Unlock()
	if gone {
		h.t.store.Unused(ino)
	}
	return free
}

// Restore counts n holds of ino from before a restart of the process. It may
// be an orphan, if the collector did not run yet. ErrStale for
// an inode that the store does not have: it is not held.
func (h *Holder) Restore(ctx context.Context, ino record.Ino, n uint64) error {
	h.count(ino, n)
	stored, orphan, err := h.t.store.Look(ctx, ino)
	switch {
	case err == nil && !stored:
		err = fmt.Errorf("inode %d: %w", ino, fserr.ErrStale)
	case err == nil && orphan:
		h.t.MarkOrphan(ino)
	}
	if err != nil {
		h.Release(ino, n)
	}
	return err
}

// RestoreOrphan is Restore of what the store has without links, as was seen since the
// process may have it, before others removed any of these.
func (h *Holder) RestoreOrphan(ino record.Ino, n uint64) {
	h.count(ino, n)
	h.t.MarkOrphan(ino)
}

// count counts n holds of what nobody removes: the others are told of nothing before all is
// restored (Session.Restored), and what is open stays.
func (h *Holder) count(ino record.Ino, n uint64) {
	s := h.t.shard(ino)
	s.mu.Lock()
	defer s.mu.Unlock()
	h.shards[uint64(ino)%tableShards].add(ino, n)
}

// Each calls fn with every inode held and its count, in no order. It sees
// neither all nor none of what changes concurrently.
func (h *Holder) Each(fn func(ino record.Ino, n uint64)) {
	type hold struct {
		ino record.Ino
		n   uint64
	}
	var list []hold
	for i := range h.shards {
		s := &h.t.shards[i]
		s.mu.Lock()
		list = list[:0]
		for ino, n := range h.shards[i].counts {
			list = append(list, hold{ino, n})
		}
		s.mu.Unlock()
		for _, x := range list {
			fn(x.ino, x.n)
		}
	}
}

// Close takes back all holds.
func (h *Holder) Close() {
	if h.closed.Swap(true) {
		return
	}
	t := h.t
	t.removeHolder(h)
	for i := range t.shards {
		s := &t.shards[i]
		var gone []record.Ino
		s.mu.Lock()
		h.shards[i] = holdShard{}
		for ino := range s.orphans {
			if t.takeOrphan(s, ino) {
				gone = append(gone, ino)
			}
		}
		s.mu.Unlock()
		for _, ino := range gone {
			h.t.store.Unused(ino)
		}
	}
}

// add counts n more.
func (s *holdShard) add(ino record.Ino, n uint64) {
	if s.counts == nil {
		s.counts = make(map[record.Ino]uint64)
	}
	s.counts[ino] += n
	s.peak = max(s.peak, len(s.counts))
}

// drop counts n less and reports whether none is left.
func (s *holdShard) drop(ino record.Ino, n uint64) (last bool) {
	c, ok := s.counts[ino]
	if n < c {
		s.counts[ino] = c - n
		return false
	}
	if !ok {
		return false
	}
	delete(s.counts, ino)
	if left := len(s.counts); s.peak > holdSmall && left < s.peak/holdShrink {
		counts := make(map[record.Ino]uint64, left)
		for i, c := range s.counts {
			counts[i] = c
		}
		s.counts, s.peak = counts, left
	}
	return true
}

func (s *holdShard) has(ino record.Ino) bool {
	_, ok := s.counts[ino]
	return ok
}
