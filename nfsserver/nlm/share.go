package nlm

import (
	"context"
	"fmt"

	"ogw/nfsserver/rpc"
	"ogw/vfs"
	"ogw/vfs/clients/share"
	"ogw/vfs/clients/subscriber"
	"ogw/vfs/lock"
)

// maxShares bounds the share reservations, of some 300 bytes each, of which every
// address may have addressShares. DOS clients have one per open file.
const maxShares, addressShares = 64 << 10, 64

// reservation is a share reservation: how somebody has opened a file, and what
// others must not do while it lasts. Only other reservations look at it.
type reservation struct {
	owner        lock.Owner
	key          subscriber.Key // who made it
	deny, access uint32
}

// shareTable holds them by inode.
type shareTable struct {
	files  map[uint64][]reservation
	places *share.Tally[subscriber.Key]
}

func newShareTable() shareTable {
	return shareTable{files: make(map[uint64][]reservation), places: share.NewTally[subscriber.Key](maxShares, addressShares)}
}

// set adds or replaces an owner's reservation. statDenied: it conflicts;
// statNoLocks.
func (t *shareTable) set(ino uint64, n reservation) (added bool, err error) {
	list := t.files[ino]
	own := -1
	for i, o := range list {
		switch {
		case o.owner == n.owner:
			own = i
		case o.deny&n.access != 0 || n.deny&o.access != 0:
			return false, statDenied
		}
	}
	if own >= 0 {
		list[own] = n
		return false, nil
	}
	if !t.places.Take(n.key, 1) {
		return false, statNoLocks
	}
	t.files[ino] = append(list, n)
	return true, nil
}

// drop removes the reservations for which gone returns true.
func (t *shareTable) drop(ino uint64, gone func(lock.Owner) bool) (n int) {
	var kept []reservation
	for _, o := range t.files[ino] {
		if gone(o.owner) {
			n++
			t.places.Give(o.key, 1)
		} else {
			kept = append(kept, o)
		}
	}
	if t.files[ino] = kept; len(kept) == 0 {
		delete(t.files, ino)
	}
	return n
}

// errNoShares is what SHARE gets where others would not know of it.
var errNoShares = fmt.Errorf("%w: several gateways use the store (cluster.gateways), and share reservations are not shared among them", vfs.ErrNoLocks)

// share is SHARE.
func (s *Server) share(ctx context.Context, c *rpc.Call, r *rpc.Reply) error {
	return s.doShare(ctx, c, r, Name, func(h *host, ino uint64, a *shareArgs, owner lock.Owner) error {
		switch {
		case s.remotes != nil:
			return errNoShares
		case s.locks.InGrace() != a.reclaim:
			return statGrace
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		added, err := s.shares.set(ino, reservation{owner, h.key, a.deny, a.access})
		if added {
			h.shares++
		}
		return err
	})
}

// unshare is UNSHARE.
func (s *Server) unshare(ctx context.Context, c *rpc.Call, r *rpc.Reply) error {
	return s.doShare(ctx, c, r, GiveUp, func(h *host, ino uint64, _ *shareArgs, owner lock.Owner) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		h.shares -= s.shares.drop(ino, func(o lock.Owner) bool { return o == owner })
		return nil
	})
}

func (s *Server) doShare(ctx context.Context, c *rpc.Call, r *rpc.Reply, want Access,
	do func(h *host, ino uint64, a *shareArgs, owner lock.Owner) error) error {
	var a shareArgs
	if err := a.decode(&c.Args); err != nil {
		return fmt.Errorf("%w: %w", rpc.ErrGarbageArgs, err)
	}
	err := func() error {
		h, err := s.enter(callerOf(c), a.caller)
		if err != nil {
			return err
		}
		defer s.leave(h)
		ino, err := s.files.Resolve(ctx, c, a.fh, want)
		if err != nil {
			return err
		}
		return do(h, ino, &a, ownerOf(h.client, 0, a.oh))
	}()
	stat := statOf(err)
	if ctx.Err() != nil {
		return rpc.ErrDrop
	}
	if stat.failure() {
		if s.logs(stat) {
			s.log.Warn("nlm: call failed", "op", "SHARE", "client", c.Remote, "name", a.caller, "status", stat, "err", err)
		}
		r.Status = uint32(stat)
	}
	r.Opaque(a.cookie)
	r.Uint32(uint32(stat))
	r.Uint32(0) // sequence: not used by anybody
	return nil
}
