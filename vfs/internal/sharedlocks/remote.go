package sharedlocks

import (
	"context"
	"slices"

	"ogw/cluster"
	"ogw/vfs/internal/record"
	"ogw/vfs/lock"
)

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

// Holds implements lock.Remotes.
func (t *Table) Holds(ctx context.Context, ino uint64, space lock.Space, l lock.Lock) (held bool, err error) {
	if err := l.Normalize(space); err != nil {
		return false, err
	}
	err = t.cfg.KV.Peek(ctx, func(r cluster.Reader) error {
		s, err := load(r, t.cfg.Gateway, ino, "", nil)
		held = err == nil && s.Holds(space, &l)
		return err
	})
	return held, mapped(err)
}

// Rebooted implements lock.Locks.
func (t *Table) Rebooted(ctx context.Context, client string, keep uint32) error {
	if o := (lock.Owner{Client: client}); !o.Remote() {
		t.ReleaseClient(client)
		return nil
	}
	var inos []uint64
	err := lockers(ctx, t.cfg.KV, client, func(name string, ino uint64, _ int) {
		if name == client {
			inos = append(inos, ino)
		}
	})
	if err != nil {
		return mapped(err)
	}
	defer t.goes(client, keep)()
	var bad failures
	for _, ino := range inos {
		for more := true; more; {
			e := t.update(ctx, ino, change{do: func(s *state) error {
				more = s.rebooted(client, keep)
				return nil
			}})
			if e == nil {
				continue
			}
			if !lasting(e) {
				return mapped(e)
			}
			bad.add(e)
			break
		}
	}
	return mapped(bad.err())
}

// rebooted gives up what a remote client has of an era that is not keep, and reports whether
// there is more.
func (s *state) rebooted(client string, keep uint32) (more bool) {
	s.touched = append(s.touched, client)
	for space := range s.Held {
		s.UnsetClient(lock.Space(space), client, keep)
	}
	noteKnown(s.FileLocks, func(o lock.Owner) bool { return o.Client == client }) // of which era the rest is, nobody can say
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
	err = lockers(ctx, t.cfg.KV, prefix, func(client string, _ uint64, n int) {
		if k := len(list) - 1; k >= 0 && list[k].Client == client {
			list[k].Locks += n
		} else {
			list = append(list, lock.RemoteClient{Client: client, Locks: n})
		}
	})
	return list, mapped(err)
}
