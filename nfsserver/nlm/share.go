package nlm

import (
	"context"
	"fmt"
	"log/slog"

	"ogw/nfsserver/rpc"
	"ogw/vfs/lock"
)

// share is SHARE. It has no state number: it is of the last boot of its client that is known.
func (s *Server) share(ctx context.Context, c *rpc.Call, r *rpc.Reply) error {
	return s.doShare(ctx, c, r, Name, func(h *host, ino uint64, a *shareArgs, l lock.Lock) error {
		if err := s.admit(ctx, h, a.reclaim, true); err != nil {
			return err
		}
		l.Type, l.Era = lock.Reserve(uint8(a.access), uint8(a.deny)), s.eraOf(h, 0)
		if a.reclaim {
			return s.locks.Reclaim(ctx, ino, lock.Share, l)
		}
		return s.locks.TryLock(ctx, ino, lock.Share, l)
	})
}

// unshare is UNSHARE, of whatever its owner has reserved.
func (s *Server) unshare(ctx context.Context, c *rpc.Call, r *rpc.Reply) error {
	return s.doShare(ctx, c, r, GiveUp, func(_ *host, ino uint64, _ *shareArgs, l lock.Lock) error {
		return s.locks.Unlock(ctx, ino, lock.Share, l)
	})
}

func (s *Server) doShare(ctx context.Context, c *rpc.Call, r *rpc.Reply, want Access,
	do func(h *host, ino uint64, a *shareArgs, l lock.Lock) error) error {
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
		return do(h, ino, &a, lock.Lock{Owner: ownerOf(h.client, 0, a.oh)})
	}()
	stat := statOf(err)
	if ctx.Err() != nil {
		return rpc.ErrDrop
	}
	level, what := slog.LevelDebug, "nlm: call"
	if stat.failure() {
		r.Status = uint32(stat)
		if s.logs(stat) {
			level, what = slog.LevelWarn, "nlm: call failed"
		}
	}
	s.log.Log(ctx, level, what, "op", procNames[c.Proc], "client", c.Remote, "name", a.caller,
		"access", a.access, "deny", a.deny, "reclaim", a.reclaim, "status", stat, "err", err)
	r.Opaque(a.cookie)
	r.Uint32(uint32(stat))
	r.Uint32(0) // sequence: not used by anybody
	return nil
}
