package sharedlocks

import (
	"context"
	"slices"

	"ogw/vfs/internal/record"
	"ogw/vfs/lock"
)

// file is what this process has in the locks of a file, or may have. One transaction of the
// process runs at a time for each file. Table.mu guards the rest.
type file struct {
	ino   uint64
	turn  chan struct{} // holds one while somebody has it
	users int           // who have it or wait for it

	version uint64             // of what is known of the store, counted here
	owners  map[lock.Owner]int // what each has in the store
	unsure  map[lock.Owner]bool
	doubt   bool // transactions without an answer may still come
	again   bool // others since that was asked about
	stale   bool // what they left is not known yet
	settled int  // how often that was over
	waiters map[uint64]*waiter
	late    []*late
	gone    []uint64             // gateways that seem to be gone, and vouch for something
	told    map[told][]lock.Lock // what the journals know
}

// waiter is a request of this process that waits.
type waiter struct {
	ticket uint64
	space  lock.Space
	lock   lock.Lock
	fresh  bool // the owner held nothing of the range
	done   func(error)
}

// late is what is to be given up and is not yet, as far as is known: a range or, with a
// ticket, a request.
type late struct {
	space      lock.Space
	owner      lock.Owner
	start, end uint64
	ticket     uint64
	fresh      bool // what was granted for the ticket is given up, too
	applied    bool // once, but it may have to be again
	// spares are what the owner waited for when it gave the range up: what of it was granted
	// since is not given up. For a request that is what it waits for
	// when that is told to the store (due).
	spares []waited
}

func (u *late) whole() bool { return u.ticket != 0 || u.start == 0 && u.end == lock.EOF }

// apply gives up what is late, but for what of it was granted to spares.
func (u *late) apply(s *state, spares []waited) {
	var keep []waited
	switch {
	case u.ticket == 0:
	case s.withdraw(u.ticket):
		return
	case u.owner.Remote():
		others, untold := takeBack(s.FileLocks, u.space, u.owner, u.ticket)
		if !untold {
			return
		}
		keep = others
	case !u.fresh:
		return
	}
	for _, w := range spares {
		if !slices.ContainsFunc(s.Waiting, func(x lock.Waiter) bool { return x.Ticket == w.ticket }) {
			keep = append(keep, w)
		}
	}
	unsetBut(s.FileLocks, u.space, &lock.Lock{Owner: u.owner, Start: u.start, End: u.end}, keep)
}

// due is what is late, as a transaction that begins now is to give it up.
type due struct {
	*late
	spares []waited
}

// dues returns what is late. Under mu.
func (f *file) dues() []due {
	list := make([]due, len(f.late))
	for i, u := range f.late {
		list[i] = due{u, u.spares}
		if u.ticket != 0 {
			list[i].spares = f.waits(u.space, u.owner)
		}
	}
	return list
}

// waits returns what an owner waits for. Under mu.
func (f *file) waits(s lock.Space, o lock.Owner) (list []waited) {
	for _, w := range f.waiters {
		if w.space == s && w.lock.Owner == o {
			list = append(list, waited{w.ticket, w.lock.Start, w.lock.End})
		}
	}
	return list
}

// granted notes what an owner got: who gives up another request of it, for the same range, does
// not give that up. Under mu, by who has the turn.
func (f *file) granted(s lock.Space, l *lock.Lock) {
	same := func(space lock.Space, o lock.Owner, start, end uint64) bool {
		return space == s && o == l.Owner && start <= l.End && l.Start <= end
	}
	for _, w := range f.waiters {
		if same(w.space, w.lock.Owner, w.lock.Start, w.lock.End) {
			w.fresh = false
		}
	}
	for _, u := range f.late {
		if u.ticket != 0 && same(u.space, u.owner, u.start, u.end) {
			u.fresh = false
		}
	}
}

// less returns what is held of a list after what is late. Under mu.
func (f *file) less(s lock.Space, held []lock.Lock) []lock.Lock {
	left := lock.File{}
	left.Held[s] = slices.Clone(held)
	for _, u := range f.late {
		if u.ticket == 0 && u.space == s {
			left.Unset(s, u.owner, u.start, u.end)
		}
	}
	return left.Held[s]
}

// told is what a Journal is about.
type told struct {
	client string
	space  lock.Space
}

// verdict is what a waiter gets, once nothing is locked.
type verdict struct {
	w   *waiter
	err error
}

func tell(list []verdict) {
	for _, v := range list {
		v.w.done(v.err)
	}
}

// enter waits for the turn of a file.
func (t *Table) enter(ctx context.Context, ino uint64) (*file, error) {
	t.mu.Lock()
	f := t.files[ino]
	if f == nil {
		f = &file{ino: ino, turn: make(chan struct{}, 1), owners: make(map[lock.Owner]int), waiters: make(map[uint64]*waiter)}
		t.files[ino] = f
	}
	f.users++
	t.mu.Unlock()
	select {
	case f.turn <- struct{}{}:
		return f, nil
	case <-ctx.Done():
		t.mu.Lock()
		defer t.mu.Unlock()
		f.users--
		t.settle(f)
		return nil, context.Cause(ctx)
	}
}

// leave gives the turn on.
func (t *Table) leave(f *file) {
	<-f.turn
	t.mu.Lock()
	defer t.mu.Unlock()
	f.users--
	t.settle(f)
}

// settle has the poller know whether a file needs it, and forgets one of which nothing is
// left. Under mu.
func (t *Table) settle(f *file) {
	if len(f.waiters)+len(f.late) > 0 || f.stale {
		t.busy[f.ino] = f
		t.rouse()
	} else {
		delete(t.busy, f.ino)
	}
	if f.users+len(f.owners)+len(f.waiters)+len(f.late) == 0 && !f.doubt && !f.stale {
		delete(t.files, f.ino)
	}
}

// knows reports whether an owner may have something in a file. Under mu.
func (t *Table) knows(ino uint64, o lock.Owner) bool {
	f := t.files[ino]
	if f == nil {
		return false
	}
	_, known := f.owners[o]
	return known
}

// has reports whether owners of a client may have something. Under mu.
func (f *file) has(client string) bool {
	for o := range f.owners {
		if o.Client == client {
			return true
		}
	}
	return false
}

// absorb learns what the store has of this process, and returns what its waiters get. ended
// are those that wait no more and were not granted. Under mu, by who has the turn.
func (t *Table) absorb(f *file, now *record.FileLocks, ended map[uint64]error) (list []verdict) {
	f.version++
	counts := make(map[lock.Owner]int, len(f.owners))
	for s := range now.Held {
		for i := range now.Held[s] {
			counts[now.Held[s][i].Owner]++
		}
	}
	waiting := make(map[uint64]bool, len(now.Waiting))
	for i := range now.Waiting {
		counts[now.Waiting[i].Lock.Owner]++
		waiting[now.Waiting[i].Ticket] = true
	}
	t.journalize(f, now)
	for o, before := range f.owners {
		t.tally.Add(o.Client, counts[o]-before)
		if f.owners[o] = counts[o]; counts[o] == 0 && !f.unsure[o] && !f.stale {
			delete(f.owners, o)
		}
	}
	for ticket, w := range f.waiters {
		if waiting[ticket] {
			continue
		}
		delete(f.waiters, ticket)
		err, known := ended[ticket]
		if !known && w.lock.Owner.Remote() && !now.Holds(w.space, &w.lock) { // given up since, elsewhere
			err, known = lock.ErrInterrupted, true
		}
		if !known {
			f.granted(w.space, &w.lock)
		}
		if !known || err != nil {
			list = append(list, verdict{w, err})
		}
	}
	return list
}

// journalize has the journals of clients know what they hold.
func (t *Table) journalize(f *file, now *record.FileLocks) {
	for client, j := range t.journals {
		for s := range now.Held {
			k := told{client, lock.Space(s)}
			own := f.less(lock.Space(s), now.Of(lock.Space(s), client))
			before, known := f.told[k]
			if slices.Equal(own, before) && (known || !f.has(client)) {
				continue
			}
			if f.told == nil {
				f.told = make(map[told][]lock.Lock)
			}
			f.told[k] = own
			j(f.ino, lock.Space(s), slices.Clone(own))
		}
	}
}

// journalLate has the journal of a client know what is late at once: the next server must not
// take it back. Under mu.
func (t *Table) journalLate(f *file, client string, s lock.Space) {
	j, k := t.journals[client], told{client, s}
	if j == nil {
		return
	}
	if own := f.less(s, f.told[k]); !slices.Equal(own, f.told[k]) {
		f.told[k] = own
		j(f.ino, s, slices.Clone(own))
	}
}
