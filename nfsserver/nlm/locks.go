package nlm

import (
	"context"
	"fmt"
	"slices"

	"ogw/nfsserver/rpc"
	"ogw/nfsserver/xdr"
	"ogw/vfs/lock"
)

// result of a call.
type result struct {
	stat   Stat
	holder lock.Lock // of TEST, when denied
}

// answered makes the handler of a synchronous procedure.
func (s *Server) answered(proc int) func(context.Context, *rpc.Call, *rpc.Reply) error {
	return func(ctx context.Context, c *rpc.Call, r *rpc.Reply) error {
		var a lockArgs
		res, err := s.handle(ctx, c, proc, &a)
		if err != nil {
			return err
		}
		if res.stat.failure() {
			r.Status = uint32(res.stat)
		}
		res.encode(&r.Writer, proc, a.cookie)
		return nil
	}
}

// encode writes an nlm4_res or an nlm4_testres.
func (res *result) encode(w *xdr.Writer, proc int, cookie []byte) {
	w.Opaque(cookie)
	w.Uint32(uint32(res.stat))
	if proc == procTest && res.stat == statDenied {
		putHolder(w, res.holder)
	}
}

// messaged makes the handler of an asynchronous procedure: an empty reply
// now, and a call with the result afterwards.
func (s *Server) messaged(proc int) func(context.Context, *rpc.Call, *rpc.Reply) error {
	return func(ctx context.Context, c *rpc.Call, _ *rpc.Reply) error {
		var a lockArgs
		res, err := s.handle(ctx, c, proc, &a)
		if err != nil {
			return err
		}
		var w xdr.Writer
		res.encode(&w, proc, a.cookie)
		s.answerLater(callerOf(c), uint32(proc+procTestMsg-procTest+msgToRes), w.B)
		return nil
	}
}

// result takes a _RES call.
func (s *Server) result(_ context.Context, c *rpc.Call, _ *rpc.Reply) error {
	if _, _, err := decodeResult(c.Args.Rest()); err != nil {
		return fmt.Errorf("%w: %w", rpc.ErrGarbageArgs, err)
	}
	return nil
}

// handle decodes a call and does it. An error means that no result is sent.
func (s *Server) handle(ctx context.Context, c *rpc.Call, proc int, a *lockArgs) (result, error) {
	if err := a.decode(&c.Args, proc); err != nil {
		return result{}, fmt.Errorf("%w: %w", rpc.ErrGarbageArgs, err)
	}
	if proc == procGranted { // this side never waits for anybody's lock
		return result{stat: statDenied}, nil
	}
	holder, err := s.do(ctx, c, proc, a)
	if ctx.Err() != nil {
		return result{}, rpc.ErrDrop // the client asks the next process
	}
	res := result{statOf(err), holder}
	if res.stat.failure() && s.logs(res.stat) {
		s.log.Warn("nlm: call failed", "op", procNames[proc], "client", c.Remote, "name", a.caller,
			"svid", a.svid, "status", res.stat, "err", err)
	} else {
		s.log.Debug("nlm: call", "op", procNames[proc], "client", c.Remote, "name", a.caller, "svid", a.svid,
			"exclusive", a.exclusive, "block", a.block, "reclaim", a.reclaim,
			"offset", a.offset, "length", a.length, "status", res.stat)
	}
	return res, nil
}

// logs reports whether a failure is one for the log. Clients ask for what is refused
// again and again, also on a server that grants no locks at all: these are logged at powers
// of two.
func (s *Server) logs(stat Stat) bool {
	if stat != statNoLocks {
		return true
	}
	n := s.refused.Add(1)
	return n&(n-1) == 0
}

func (s *Server) do(ctx context.Context, c *rpc.Call, proc int, a *lockArgs) (holder lock.Lock, err error) {
	h, err := s.enter(callerOf(c), a.caller)
	if err != nil {
		return holder, err
	}
	defer s.leave(h)
	ino, err := s.files.Resolve(ctx, c, a.fh, a.access(proc))
	if err != nil {
		return holder, err
	}
	l, err := a.lock(h.client)
	if err != nil {
		return holder, err
	}
	switch proc {
	case procTest:
		return s.test(ctx, ino, l)
	case procUnlock:
		return holder, s.unlock(ctx, h, ino, l)
	case procCancel:
		return holder, s.cancel(ctx, h, ino, l)
	}
	a.monitored = proc == procLock
	return holder, s.lock(ctx, h, ino, a, l)
}

// access is what a call does with its file.
func (a *lockArgs) access(proc int) Access {
	switch {
	case proc == procUnlock || proc == procCancel:
		return GiveUp
	case proc != procLock && proc != procNMLock:
		return Name
	case a.exclusive:
		return Write
	}
	return Read
}

func (s *Server) test(ctx context.Context, ino uint64, l lock.Lock) (holder lock.Lock, err error) {
	if s.locks.InGrace() {
		return holder, statGrace
	}
	holder, held, err := s.locks.Test(ctx, ino, lock.Range, l)
	if err == nil && held {
		err = statDenied
	}
	return holder, err
}

// lock is LOCK, and NM_LOCK, whose clients are not monitored and do not wait.
func (s *Server) lock(ctx context.Context, h *host, ino uint64, a *lockArgs, l lock.Lock) error {
	if err := s.admit(ctx, h, a.reclaim, a.monitored); err != nil {
		return err
	}
	l.Era = s.eraOf(h, a.state)
	switch {
	case a.reclaim:
		return s.locks.Reclaim(ctx, ino, lock.Range, l)
	case a.block && a.monitored:
		return s.lockOrWait(ctx, h, ino, a, l)
	}
	return s.locks.TryLockSoon(ctx, ino, lock.Range, l)
}

// admit is what comes before a client is granted anything. Where that outlives the server nobody
// needs to reclaim, and who does may ask.
func (s *Server) admit(ctx context.Context, h *host, reclaim, monitored bool) error {
	switch {
	case s.remotes != nil:
		return nil
	case s.locks.InGrace() != reclaim:
		return statGrace // too early, or too late to reclaim
	case !monitored:
		return nil
	}
	return s.watch(ctx, h)
}

// unlock is UNLOCK. It is allowed in a grace period: a client does not
// reclaim what it gave up. A request that waits for the same range is
// cancelled, and a grant within the range need not be reported any more.
func (s *Server) unlock(ctx context.Context, h *host, ino uint64, l lock.Lock) error {
	var cancels []func() bool
	s.mu.Lock()
	for key, b := range h.waits {
		if key.ino != ino || key.owner != l.Owner {
			continue
		}
		switch same := key.start == l.Start && key.end == l.End; {
		case b.state == granted && l.Start <= key.start && key.end <= l.End:
			s.endLocked(b)
		case b.state == waiting && same:
			s.endLocked(b)
			if b.cancel != nil {
				cancels = append(cancels, b.cancel)
			}
		}
	}
	s.mu.Unlock()
	for _, cancel := range cancels {
		cancel() // what was granted meanwhile is given up below
	}
	return s.locks.Unlock(ctx, ino, lock.Range, lock.Lock{Owner: l.Owner, Start: l.Start, End: l.End})
}

// keep returns a copy of the arguments that outlives the call.
func (a *lockArgs) keep() lockArgs {
	k := *a
	k.cookie, k.fh, k.oh = nil, slices.Clone(a.fh), slices.Clone(a.oh)
	return k
}
