package sharedlocks

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ogw/cluster"
	"ogw/vfs/internal/record"
	"ogw/vfs/lock"
)

// errDoubt means that what a remote client asked for before may still come to be.
var errDoubt = fmt.Errorf("%w: a request of before may still be carried out", cluster.ErrUnavailable)

// voucher is whose fence the locks of an owner need that asks here; 0: none, since they are
// a remote client's.
func (s *state) voucher(o lock.Owner) uint64 {
	if o.Remote() {
		return 0
	}
	return s.me
}

// closing returns which close of an owner may end its locks soon.
func (s *state) closing(o lock.Owner) uint64 {
	if o.Remote() {
		return 0
	}
	return s.Holders[o].Closing
}

// same reports whether a request is for what l is.
func same(w *lock.Waiter, s lock.Space, l *lock.Lock) bool {
	return w.Space == s && w.Lock.Owner == l.Owner && w.Lock.Type == l.Type && w.Lock.Start == l.Start && w.Lock.End == l.End
}

// unreported reports whether a ticket is what the owner, of a remote client, was granted
// something for, and it has asked no gateway for anything since.
func (s *state) unreported(o lock.Owner, ticket uint64) bool {
	h, ok := s.Holders[o]
	return ok && h.Closing == ticket
}

// storeLockers writes what remote clients have, where that changed.
func (s *state) storeLockers(t cluster.Txn) error {
	now := s.Lockers()
	list := slices.Clone(s.touched)
	for client, n := range s.lockers {
		if now[client] != n {
			list = append(list, client)
		}
	}
	for client := range now {
		if _, known := s.lockers[client]; !known {
			list = append(list, client)
		}
	}
	slices.Sort(list)
	for _, client := range slices.Compact(list) {
		key, err := record.LockerKey(client, s.ino), error(nil)
		if n := now[client]; n > 0 {
			err = t.Set(key, record.EncodeLocker(n))
		} else {
			err = t.Delete(key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unlockRemote is Unlock for a remote client. It is done when it returns nil: the client asks
// again, whichever gateway, and nothing is late of it, which could end what it locks since.
func (t *Table) unlockRemote(ctx context.Context, ino uint64, space lock.Space, l lock.Lock) error {
	err := t.update(ctx, ino, change{owner: &l.Owner, do: func(s *state) error {
		for _, w := range slices.Clone(s.Waiting) {
			if w.Space == space && w.Lock.Owner == l.Owner && w.Lock.Start == l.Start && w.Lock.End == l.End {
				s.dismiss(w.Ticket, record.EndDismissed)
			}
		}
		s.opened(l.Owner)
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

// Withdraw implements lock.Remotes.
func (t *Table) Withdraw(ctx context.Context, ino uint64, space lock.Space, l lock.Lock) (found bool, err error) {
	if err := l.Normalize(space); err != nil {
		return false, err
	}
	err = t.update(ctx, ino, change{do: func(s *state) error {
		found = false
		for _, w := range slices.Clone(s.Waiting) {
			if same(&w, space, &l) {
				s.dismiss(w.Ticket, record.EndDismissed)
				found = true
			}
		}
		return nil
	}})
	return found, mapped(err)
}

// Rebooted implements lock.Locks.
func (t *Table) Rebooted(ctx context.Context, client string, keep uint32) error {
	if o := (lock.Owner{Client: client}); !o.Remote() {
		t.ReleaseClient(client)
		return nil
	}
	var inos []uint64
	err := t.lockers(ctx, client, func(name string, ino uint64, _ int) {
		if name == client {
			inos = append(inos, ino)
		}
	})
	for _, ino := range inos {
		for more := true; more; {
			e := t.update(ctx, ino, change{do: func(s *state) error {
				more = s.rebooted(client, keep)
				return nil
			}})
			if e == nil {
				continue
			}
			if err = errors.Join(err, e); !lasting(e) {
				return mapped(err)
			}
			break
		}
	}
	return mapped(err)
}

// rebooted gives up what a remote client has of an era that is not keep, and reports whether
// there is more.
func (s *state) rebooted(client string, keep uint32) (more bool) {
	s.touched = append(s.touched, client)
	for space := range s.Held {
		s.UnsetClient(lock.Space(space), client, keep)
	}
	for _, w := range slices.Clone(s.Waiting) {
		if !w.Lock.Before(client, keep) {
			continue
		}
		if !s.mayMove() {
			return true
		}
		s.dismiss(w.Ticket, record.EndDismissed)
	}
	return false
}

// RemoteClients implements lock.Remotes.
func (t *Table) RemoteClients(ctx context.Context, prefix string) (list []lock.RemoteClient, err error) {
	err = t.lockers(ctx, prefix, func(client string, _ uint64, n int) {
		if k := len(list) - 1; k >= 0 && list[k].Client == client {
			list[k].Locks += n
		} else {
			list = append(list, lock.RemoteClient{Client: client, Locks: n})
		}
	})
	return list, mapped(err)
}

// lockers walks through what remote clients have whose names begin with a prefix, by client
// and file.
func (t *Table) lockers(ctx context.Context, prefix string, fn func(client string, ino uint64, n int)) error {
	type locker struct {
		client string
		ino    uint64
		n      int
	}
	var list []locker
	from, to := record.Lockers(prefix)
	err := t.cfg.KV.View(ctx, func(r cluster.Reader) error {
		list = list[:0]
		return r.Scan(from, to, cluster.ScanOptions{}, func(k, v []byte) error {
			client, ino, err := record.ParseLockerKey(k)
			if err == nil { // else Check reports it
				list = append(list, locker{client, ino, record.DecodeLocker(v)})
			}
			return nil
		})
	})
	for _, x := range list {
		if err == nil {
			fn(x.client, x.ino, x.n)
		}
	}
	return err
}
