package sharedlocks

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/record"
	"ogw/vfs/lock"
)

// endTimeout bounds how long a close, or an interrupted program, waits for the store to
// know what is given up. After that it is late.
const endTimeout = 5 * time.Second

// maxLate bounds the ranges of a file that programs unlocked, and the requests that ended
// without an answer, that the store does not know of. Whole files, of which there are as many
// as locks, are beside that.
const maxLate = 256

// errDoubt means that what a remote client asked for before may still come to be.
var errDoubt = fmt.Errorf("%w: a request of before may still be carried out", cluster.ErrUnavailable)

// Unlock implements lock.Locks. If the store does not answer, it is unlocked late.
func (t *Table) Unlock(ctx context.Context, ino uint64, s lock.Space, l lock.Lock) error {
	if err := l.Normalize(s); err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer stop()
	owner := l.Owner
	if owner.Remote() {
		return t.unlockRemote(ctx, ino, s, l)
	}
	u := &late{space: s, owner: owner, start: l.Start, end: l.End}
	t.mu.Lock()
	if !t.knows(ino, owner) {
		t.mu.Unlock()
		return nil
	}
	f := t.files[ino]
	u.spares = f.waits(s, owner)
	if u.whole() {
		f.late = slices.DeleteFunc(f.late, func(o *late) bool { return o.ticket == 0 && o.owner == owner && o.space == s })
	} else if len(f.late) >= maxLate {
		t.mu.Unlock()
		return lock.ErrNoLocks
	}
	full := t.tally.Full(owner.Client, 1)
	f.late = append(f.late, u)
	t.journalLate(f, owner.Client, s)
	t.mu.Unlock()
	err := t.update(ctx, ino, change{do: func(state *state) error {
		if full && !u.whole() && state.Splits(s, &l) {
			return lock.ErrNoLocks
		}
		return nil
	}})
	if err == nil || !lasting(err) { // else the poller tries again
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	f.late = slices.DeleteFunc(f.late, func(o *late) bool { return o == u })
	t.settle(f)
	return mapped(err)
}

// unlockRemote is Unlock for a remote client. It is done when it returns nil: the client asks
// again, whichever gateway, and nothing is late of it, which could end what it locks since.
func (t *Table) unlockRemote(ctx context.Context, ino uint64, space lock.Space, l lock.Lock) error {
	full, err := t.machineFull(ctx, l.Owner.Client)
	if err != nil {
		return mapped(err)
	}
	err = t.update(ctx, ino, change{owner: &l.Owner, do: func(s *state) error {
		if full && s.Splits(space, &l) {
			return lock.ErrNoLocks
		}
		for _, w := range slices.Clone(s.Waiting) {
			if w.Space == space && w.Lock.Owner == l.Owner && w.Lock.Start == l.Start && w.Lock.End == l.End {
				s.dismiss(w.Ticket, record.EndDismissed)
			}
		}
		noteTold(s.FileLocks, space, &l)
		s.Unset(space, l.Owner, l.Start, l.End)
		return nil
	}})
	t.mu.Lock()
	defer t.mu.Unlock()
	if f := t.files[ino]; err == nil && f != nil && f.unsure[l.Owner] {
		err = errDoubt
	}
	return mapped(err)
}

// ReleaseOwner implements lock.Locks.
func (t *Table) ReleaseOwner(ino uint64, s lock.Space, owner lock.Owner) {
	if err := t.Unlock(t.ctx, ino, s, lock.Lock{Owner: owner, End: lock.EOF}); err != nil {
		t.cfg.Log.Error("locks cannot be given up", "inode", ino, "err", err)
	}
}

// ReleaseClient implements lock.Locks.
func (t *Table) ReleaseClient(client string) {
	defer t.goes(client, 0)()
	var list []verdict
	var files []*file
	t.mu.Lock()
	for _, f := range t.files {
		mine := false
		for _, w := range f.waiters {
			if w.lock.Owner.Client == client {
				t.giveUp(f, w)
				list = append(list, verdict{w, lock.ErrInterrupted})
				mine = true
			}
		}
		for o := range f.owners {
			if o.Client == client {
				for s := range lock.Spaces {
					f.late = append(f.late, &late{owner: o, space: s, end: lock.EOF})
				}
				mine = true
			}
		}
		if mine {
			files = append(files, f)
			for s := range lock.Spaces {
				t.journalLate(f, client, s)
			}
		}
	}
	for _, f := range files {
		t.settle(f)
	}
	t.mu.Unlock()
	slices.SortFunc(files, func(a, b *file) int { return cmp.Compare(a.ino, b.ino) })
	tell(list)
	ctx, stop := context.WithTimeout(t.ctx, endTimeout)
	defer stop()
	for _, f := range files {
		if t.update(ctx, f.ino, change{}) != nil {
			return // the poller goes on
		}
	}
}

// goes notes that a client is going, until stay is called.
func (t *Table) goes(client string, keep uint32) (stay func()) {
	g := going{client, keep}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.going = append(t.going, g)
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		i := slices.Index(t.going, g)
		t.going = slices.Delete(t.going, i, i+1)
	}
}

// cancel withdraws a request and reports whether it was still waiting. If the store does not
// say, it is withdrawn late. What a remote client was granted for it, at once or later, is given
// up, unless it was granted or unlocked any of it otherwise, or had a part of it before.
func (t *Table) cancel(ino uint64, w *waiter) bool {
	ctx, stop := context.WithTimeout(t.ctx, endTimeout)
	defer stop()
	withdrawn := false
	f, err := t.enter(ctx, ino)
	if err == nil {
		var list []verdict
		list, err = t.run(ctx, f, change{do: func(s *state) error {
			if withdrawn = s.withdraw(w.ticket); withdrawn {
				s.ended[w.ticket] = nil
			} else if others, untold := takeBack(s.FileLocks, w.space, w.lock.Owner, w.ticket); untold {
				unsetBut(s.FileLocks, w.space, &w.lock, others)
			}
			return nil
		}})
		defer tell(list)
		defer t.leave(f)
	}
	if err == nil {
		return withdrawn
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	f = t.files[ino]
	if f == nil || f.waiters[w.ticket] == nil && !w.lock.Owner.Remote() {
		return false
	}
	t.giveUp(f, w)
	t.settle(f)
	return true
}

// giveUp has a request withdrawn late, and what was granted for it given up, unless that
// would take more. Under mu.
func (t *Table) giveUp(f *file, w *waiter) {
	delete(f.waiters, w.ticket)
	f.late = append(f.late, &late{space: w.space, owner: w.lock.Owner, start: w.lock.Start, end: w.lock.End, ticket: w.ticket, fresh: w.fresh})
}
