package nlm

import (
	"context"
	"encoding/binary"
	"errors"
	"net/netip"
	"syscall"
	"time"

	"ogw/nfsserver/portmap"
	"ogw/nfsserver/rpc"
	"ogw/vfs/clients/subscriber"
	"ogw/vfs/lock"
)

const (
	// maxCallbacks are made at the same time, of which every address may have
	// addressCallbacks; others wait.
	maxCallbacks, addressCallbacks = 128, 4
	// maxAnswers bounds the _RES calls that wait for their turn: a client
	// whose answer is dropped asks again. Every address may have addressAnswers.
	maxAnswers, addressAnswers = 1024, 16
	// callTimeout bounds one call to a client, the portmapper's part included.
	callTimeout = 5 * time.Second
	// grantTries are made before a grant is no longer reported. A client that
	// waits asks again by itself (Linux: every 30 seconds).
	grantTries = 8
	// grantPause is between the first two; it doubles up to maxGrantPause.
	grantPause    = 500 * time.Millisecond
	maxGrantPause = 15 * time.Second
)

// callBack notifies a client that its lock was granted.
func (s *Server) callBack(b *blocked) {
	sent := false
	pause := grantPause
	for try := range grantTries {
		if try > 0 {
			select {
			case <-time.After(pause):
			case <-s.ctx.Done():
				return
			}
			pause = min(2*pause, maxGrantPause)
		}
		if !s.isGranted(b) {
			return // the client knows, or does not want it any more
		}
		held, err := s.stillHeld(b)
		if err != nil {
			continue
		}
		if !held {
			s.taken(b)
			return
		}
		begin := time.Now()
		stat, delivered, err := s.grant(b)
		// A datagram was sent again by then: a refusal may mean that the
		// first one was taken.
		repeated := sent || time.Since(begin) >= rpc.FirstResend
		sent = sent || delivered
		s.log.Debug("nlm: granted by callback", "client", b.host.addr, "try", try+1, "status", stat, "err", err)
		switch {
		case err != nil, stat == statGrace:
			continue
		case stat == statDenied && !repeated:
			s.giveUp(b, "the client does not want it")
		default:
			s.taken(b)
		}
		return
	}
	if !sent {
		s.giveUp(b, "the client cannot be reached")
		return
	}
	s.log.Warn("nlm: no answer to a granted lock; it stays until the client gives it up or reboots",
		"client", b.host.addr, "name", b.host.name, "inode", b.key.ino)
	s.taken(b)
}

// stillHeld reports whether a client has what it was granted. Beside others it may have given
// that up since, at another gateway.
func (s *Server) stillHeld(b *blocked) (bool, error) {
	if s.remotes == nil {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(s.ctx, callTimeout)
	defer cancel()
	k := b.key
	return s.remotes.Holds(ctx, k.ino, lock.Range, lock.Lock{Owner: k.owner, Type: k.typ, Start: k.start, End: k.end})
}

func (s *Server) isGranted(b *blocked) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return b.state == granted
}

func (s *Server) taken(b *blocked) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLocked(b)
}

// giveUp undoes a grant, unless the client has learnt of it in another way.
func (s *Server) giveUp(b *blocked, why string) {
	s.mu.Lock()
	still, cancel := b.state == granted, b.cancel
	s.endLocked(b)
	s.mu.Unlock()
	if still {
		s.log.Info("nlm: a granted lock is given up", "client", b.host.addr, "name", b.host.name, "inode", b.key.ino, "reason", why)
		cancel() // of a request that was queued, as callBack is for
	}
}

// grant makes a GRANTED call. delivered reports whether the client may have got
// it.
func (s *Server) grant(b *blocked) (stat Stat, delivered bool, err error) {
	s.mu.Lock()
	h := b.host
	k := caller{h.addr, h.local, h.network}
	port := h.port
	s.cookie++
	cookie := binary.BigEndian.AppendUint64(nil, s.cookie)
	s.mu.Unlock()
	results, port, delivered, err := s.call(k, port, procGranted, b.args.encodeGranted(cookie))
	if err != nil {
		port = 0 // ask again: the client's NLM may have moved
	}
	s.mu.Lock()
	h.port = port
	s.mu.Unlock()
	if err != nil {
		return 0, delivered, err
	}
	_, stat, err = decodeResult(results)
	return stat, true, err
}

// call makes one call to a client's NLM, at port, or where its portmapper
// says, which it returns.
func (s *Server) call(k caller, port uint16, proc uint32, args []byte) (results []byte, at uint16, delivered bool, err error) {
	slot := s.slots.Join(subscriber.Of(k.remote))
	defer slot.Leave()
	if err := slot.Acquire(s.ctx, 1); err != nil {
		return nil, 0, false, err
	}
	defer slot.Release(1)
	ctx, cancel := context.WithTimeout(s.ctx, callTimeout)
	defer cancel()
	to := netip.AddrPortFrom(k.remote, port)
	if port == 0 {
		if to, err = s.lookup(ctx, k); err != nil {
			return nil, 0, false, err
		}
	}
	nc, err := rpc.Dial(ctx, k.network, k.local, to)
	if err != nil {
		return nil, 0, false, err
	}
	defer nc.Close()
	results, err = rpc.Invoke(ctx, nc, rpc.Procedure{Prog: ProgramNumber, Vers: Version, Proc: proc}, args)
	// Where nobody listens, or serves something else, nobody took the lock.
	nobody := errors.Is(err, rpc.ErrNoProgram) || errors.Is(err, syscall.ECONNREFUSED)
	return results, to.Port(), !nobody, err
}

// lookup asks the client's portmapper, by the network of its calls, then by
// the other.
func (s *Server) lookup(ctx context.Context, k caller) (netip.AddrPort, error) {
	other := map[string]string{"tcp": "udp", "udp": "tcp"}[k.network]
	mapper := netip.AddrPortFrom(k.remote, s.cfg.PortmapPort)
	first, cancel := context.WithTimeout(ctx, callTimeout/2)
	defer cancel()
	ask := portmap.Question{Prog: ProgramNumber, Vers: Version, Network: k.network, From: k.local, Host: mapper}
	to, err := portmap.Lookup(first, ask)
	if err == nil || errors.Is(err, portmap.ErrNotRegistered) {
		return to, err
	}
	ask.By = other
	to, e := portmap.Lookup(ctx, ask)
	if e != nil {
		return to, errors.Join(err, e)
	}
	return to, nil
}

// answerLater makes a _RES call in the background.
func (s *Server) answerLater(k caller, proc uint32, args []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := subscriber.Of(k.remote)
	if s.closed || !s.answers.Take(key, 1) {
		return
	}
	s.wait.Go(func() {
		if _, _, _, err := s.call(k, 0, proc, args); err != nil {
			s.log.Debug("nlm: answer not taken", "client", k.remote, "op", procNames[proc], "err", err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.answers.Give(key, 1)
	})
}
