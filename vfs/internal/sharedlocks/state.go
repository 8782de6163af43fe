package sharedlocks

import (
	"bytes"
	"fmt"
	"slices"

	"ogw/cluster"
	"ogw/vfs/internal/record"
	"ogw/vfs/lock"
)

const (
	// maxFileLocks bounds what is held of a file and waits for it, all of which
	// each of its transactions reads and writes.
	maxFileLocks = 4096
	// maxFileBytes bounds the record of a file.
	maxFileBytes = 256 << 10
	// maxFileShares and maxShareBytes are what of both there may be where a share reservation is
	// granted: the rest is for ranges and flocks, for which a client needs more rights.
	maxFileShares = 2048
	maxShareBytes = 128 << 10
	// maxWaits bounds the files in which one owner waits: the threads of a process.
	maxWaits = 64
	// maxMoved bounds the owners that one transaction has wait no more: two operations each,
	// of the 127 of etcd. The next one goes on.
	maxMoved = 16
	// maxWalk bounds the owners, and the files, that one transaction walks through in search
	// of a deadlock. Linux gives up after ten.
	maxWalk = 16
	// maxFences bounds the gateways that one transaction asks for, those that are said to be gone
	// first. Others count as there.
	maxFences = 32
)

var errTooMany = fmt.Errorf("%w: %d of a file, or %d bytes", lock.ErrNoLocks, maxFileLocks, maxFileBytes)

// state is the locks of a file within a transaction.
type state struct {
	*record.FileLocks
	r      cluster.Reader
	me     uint64
	ino    uint64
	before []byte

	lockers map[string]int  // what remote clients had before
	touched []string        // remote clients of whom that may not be so
	share   bool            // a share reservation is asked for
	force   bool            // write also what is as it was
	there   map[uint64]bool // gateways whose fences were asked for
	gone    []uint64        // those that seem to be gone
	crowd   bool            // there are more than may be asked for
	moved   []lock.Owner    // that began or ceased to wait for a range
	ranges  bool            // one was granted
	more    bool            // there was more to do than one transaction may
	walked  map[lock.Owner][]uint64
	files   map[uint64]*lock.File // that the walk met
	going   []going

	// ended are requests of this process that wait no more: by ticket, nil for those that
	// were withdrawn.
	ended map[uint64]error
}

// going is a client that gives up what it has of an era that is not keep, file by file: nobody
// is told of a deadlock that is over as soon as the last one is done.
type going struct {
	client string
	keep   uint32
}

// load reads the locks of a file. What nobody vouches for is not there, but for what a
// client has that is about to take it over ("": none).
func load(r cluster.Reader, me, ino uint64, keep string, gone []uint64) (*state, error) {
	s := &state{r: r, me: me, ino: ino, there: map[uint64]bool{me: true, 0: true}, gone: gone, ended: make(map[uint64]error)}
	var err error
	if s.before, err = r.Get(record.LockKey(ino)); err != nil {
		return nil, err
	}
	if s.FileLocks, err = record.DecodeFileLocks(s.before); err != nil {
		return nil, fmt.Errorf("inode %d: %w", ino, err)
	}
	s.lockers = s.Lockers()
	return s, s.dropDead(keep)
}

// gateways are those that vouch for something of a file.
func gateways(f *record.FileLocks) (list []uint64) {
	for _, h := range f.Holders {
		list = append(list, h.Gateway)
	}
	for _, g := range f.Waits {
		list = append(list, g)
	}
	for _, e := range f.Ended {
		list = append(list, e.Gateway)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// missing are those of them that are not among the present.
func missing(f *record.FileLocks, present map[uint64]bool) []uint64 {
	return slices.DeleteFunc(gateways(f), func(g uint64) bool { return present[g] })
}

// ask learns which gateways are there, of those that are not known yet, and returns those for
// which there is no room: they count as there. Those that seem to be gone are asked for first.
func ask(r cluster.Reader, there map[uint64]bool, list, gone []uint64) (left []uint64, err error) {
	list = slices.DeleteFunc(list, func(g uint64) bool { _, known := there[g]; return known })
	if room := max(maxFences-len(there), 0); len(list) > room {
		first := make([]uint64, 0, len(list))
		for _, seems := range []bool{true, false} {
			for _, g := range list {
				if slices.Contains(gone, g) == seems {
					first = append(first, g)
				}
			}
		}
		list, left = first[:room], first[room:]
	}
	for _, g := range left {
		there[g] = true
	}
	if len(list) == 0 {
		return left, nil
	}
	keys := make([][]byte, len(list))
	for i, g := range list {
		keys[i] = record.FenceKey(g)
	}
	values, err := r.GetMany(keys)
	if err != nil {
		return nil, err
	}
	for i, v := range values {
		there[list[i]] = v != nil
	}
	return left, nil
}

// dropDead removes what gateways vouch for that are gone.
func (s *state) dropDead(keep string) error {
	left, err := ask(s.r, s.there, gateways(s.FileLocks), s.gone)
	if err != nil {
		return err
	}
	s.crowd = s.crowd || len(left) > 0
	s.more = s.more || slices.ContainsFunc(left, func(g uint64) bool { return slices.Contains(s.gone, g) })
	for o, h := range s.Holders {
		if o.Remote() {
			h.Gateway = 0 // one of a version before has granted it
			s.Holders[o] = h
			continue
		}
		if s.there[h.Gateway] || keep != "" && keep == o.Client {
			continue
		}
		for space := range s.Held {
			s.Unset(lock.Space(space), o, 0, lock.EOF)
		}
		delete(s.Holders, o)
	}
	for _, w := range slices.Clone(s.Waiting) {
		if !s.there[s.Waits[w.Ticket]] && s.mayMove() {
			s.withdraw(w.Ticket)
		}
	}
	s.Ended = slices.DeleteFunc(s.Ended, func(e record.EndedWait) bool { return !s.there[e.Gateway] })
	return nil
}

// dropMissing is dropDead for who knows which gateways are present.
func (s *state) dropMissing(present map[uint64]bool) error {
	for _, g := range missing(s.FileLocks, present) {
		s.there[g] = false
	}
	return s.dropDead("")
}

// mayMove reports whether this transaction may have one more wait no more.
func (s *state) mayMove() bool {
	if len(s.moved) < maxMoved {
		return true
	}
	s.more = true
	return false
}

func (s *state) move(w *lock.Waiter) {
	if w.Space == lock.Range && !slices.Contains(s.moved, w.Lock.Owner) {
		s.moved = append(s.moved, w.Lock.Owner)
	}
}

// take takes or converts a lock of this process, and reports whether it is granted.
func (s *state) take(space lock.Space, l lock.Lock) bool {
	if !s.Try(space, l) {
		return false
	}
	s.ranges = s.ranges || space == lock.Range
	h := s.Holders[l.Owner]
	h.Gateway, h.Closing = voucher(s.me, l.Owner), 0
	s.Holders[l.Owner] = h
	return true
}

// opened notes that no descriptor of an owner may be about to be its last.
func (s *state) opened(o lock.Owner) {
	if h, ok := s.Holders[o]; ok {
		h.Closing = 0
		s.Holders[o] = h
	}
}

// wait queues a request of this process.
func (s *state) wait(space lock.Space, l lock.Lock, ticket uint64) {
	w := lock.Waiter{Space: space, Lock: l, Ticket: ticket}
	s.Waiting = append(s.Waiting, w)
	s.Waits[ticket] = s.me
	s.move(&w)
}

// supersede takes what an owner asked another gateway for out of the queue: a server before
// this one, of which the owner's program asks again what it still wants. A remote client
// asks again for each request by itself, and the other gateway may be there.
func (s *state) supersede(space lock.Space, l *lock.Lock) {
	for _, w := range slices.Clone(s.Waiting) {
		switch {
		case w.Lock.Owner != l.Owner || s.Waits[w.Ticket] == s.me:
		case !l.Owner.Remote():
			s.withdraw(w.Ticket)
		case same(&w, space, l):
			s.dismiss(w.Ticket, record.EndDismissed)
		}
	}
}

// withdraw takes a request out of the queue, and reports whether it was there.
func (s *state) withdraw(ticket uint64) bool {
	w, ok := s.Remove(ticket)
	if ok {
		delete(s.Waits, ticket)
		s.move(&w)
	}
	return ok
}

// dismiss is withdraw for somebody else, whose gateway is told why.
func (s *state) dismiss(ticket uint64, why byte) {
	if g := s.Waits[ticket]; g == s.me {
		s.ended[ticket] = whyEnded(why)
	} else {
		s.Ended = append(s.Ended, record.EndedWait{Ticket: ticket, Gateway: g, Why: why})
	}
	s.withdraw(ticket)
}

// learn takes what became of requests of this process that wait no more and got nothing.
func (s *state) learn() {
	s.Ended = slices.DeleteFunc(s.Ended, func(e record.EndedWait) bool {
		if e.Gateway != s.me {
			return false
		}
		s.ended[e.Ticket] = whyEnded(e.Why)
		return true
	})
}

func whyEnded(why byte) error {
	if why == record.EndDeadlock {
		return lock.ErrDeadlock
	}
	return lock.ErrInterrupted
}

// wake grants what can be granted, then ends those whose waiting came to close a cycle.
func (s *state) wake() error {
	for s.grantable() && s.mayMove() {
		w, before, _ := s.GrantNext(open)
		s.ranges = s.ranges || w.Space == lock.Range
		h, holds := s.Holders[w.Lock.Owner]
		if h.Closing = 0; !holds { // else who vouches for the rest goes on to
			h.Gateway = voucher(s.Waits[w.Ticket], w.Lock.Owner)
		}
		if s.Holders[w.Lock.Owner] = h; w.Lock.Owner.Remote() {
			noteGranted(s.FileLocks, w.Space, &w.Lock, w.Ticket, before)
		}
		delete(s.Waits, w.Ticket)
		s.move(&w)
	}
	if !s.ranges {
		return nil
	}
	for _, w := range slices.Clone(s.Waiting) {
		if w.Space != lock.Range {
			continue
		}
		if found, err := s.deadlocks(&w.Lock); err != nil {
			return err
		} else if !found || !s.mayMove() {
			continue
		}
		s.dismiss(w.Ticket, record.EndDeadlock)
	}
	return nil
}

// open is which spaces are closed to grants.
func open(lock.Space) bool { return false }

func (s *state) grantable() bool { return grantable(&s.File) }

// grantable reports whether one that waits can be granted.
func grantable(f *lock.File) bool {
	return slices.ContainsFunc(f.Waiting, func(w lock.Waiter) bool { return f.Blocker(w.Space, &w.Lock) == nil })
}

// store writes what changed.
func (s *state) store(t cluster.Txn) error {
	if err := s.storeMoved(t); err != nil {
		return err
	}
	if err := storeLockers(t, s.ino, s.lockers, s.Lockers(), s.touched); err != nil {
		return err
	}
	for o := range s.Holders {
		if !s.holds(o) {
			delete(s.Holders, o)
		}
	}
	if s.Idle() {
		if s.before == nil {
			return nil
		}
		return t.Delete(record.LockKey(s.ino))
	}
	most, room := maxFileLocks, maxFileBytes
	if s.share {
		most, room = maxFileShares, maxShareBytes
	}
	now := encodeWithin(s.FileLocks, room)
	switch {
	case bytes.Equal(now, s.before) && !s.force:
		return nil
	case (len(now) > room || s.Len() > most) && len(now) > len(s.before):
		return errTooMany
	}
	return t.Set(record.LockKey(s.ino), now)
}

func (s *state) holds(o lock.Owner) bool {
	of := func(l lock.Lock) bool { return l.Owner == o }
	return slices.ContainsFunc(s.Held[:], func(held []lock.Lock) bool { return slices.ContainsFunc(held, of) })
}

// storeMoved writes where those wait that began to, or ceased.
func (s *state) storeMoved(t cluster.Txn) error {
	if len(s.moved) == 0 {
		return nil
	}
	keys := make([][]byte, len(s.moved))
	for i, o := range s.moved {
		keys[i] = record.WaitKey(o)
	}
	values, err := t.GetMany(keys)
	if err != nil {
		return err
	}
	for i, o := range s.moved {
		inos, err := record.DecodeWaits(values[i])
		if err != nil {
			return err
		}
		at, was := slices.BinarySearch(inos, s.ino)
		now := slices.ContainsFunc(s.Waiting, func(w lock.Waiter) bool { return w.Space == lock.Range && w.Lock.Owner == o })
		switch {
		case was == now:
			continue
		case now && len(inos) >= maxWaits:
			return fmt.Errorf("%w: one owner waits in %d files", lock.ErrNoLocks, maxWaits)
		case now:
			inos = slices.Insert(inos, at, s.ino)
		default:
			inos = slices.Delete(inos, at, at+1)
		}
		if len(inos) == 0 {
			err = t.Delete(keys[i])
		} else {
			err = t.Set(keys[i], record.EncodeWaits(inos))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
