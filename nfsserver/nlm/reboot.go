package nlm

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"ogw/nfsserver/nsm"
	"ogw/nfsserver/rpc"
	"ogw/vfs/lock"
)

// eraOf returns the state number of a client that sends one with a lock, or else the last
// one that is known: a notice of the same state that comes late is not about the lock. Nor
// does a lock of another state end those of before: a Linux client's number may change
// while it runs (statd's, read before sm-notify counts the boot, and again when statd is
// started anew). Only a notice says that the client has rebooted.
func (s *Server) eraOf(h *host, state uint32) uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state != 0 {
		h.state = state
	}
	return h.state
}

// rebooted frees what a client held before it rebooted (SM_NOTIFY).
func (s *Server) rebooted(from netip.Addr, name string, state uint32) {
	for _, h := range s.match(from, name) {
		s.mu.Lock()
		known := h.state == state && state != 0 // shares have no era
		h.state = state
		h.port = 0
		s.mu.Unlock()
		before := s.locks.ClientCount(h.client)
		s.release(h, state, !known)
		s.log.Info("nlm: client has rebooted, its locks of before are free", "client", from, "name", h.name,
			"state", state, "locks", before-s.locks.ClientCount(h.client))
	}
}

// match returns the hosts that a notice is about. Only its sender's address
// counts as proof; the name distinguishes which of several behind one address. Host
// names may come with or without their domain. By which addresses of this server the
// client goes does not matter.
func (s *Server) match(from netip.Addr, name string) (list []*host) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var at []*host
	for _, h := range s.hosts {
		if h.addr != from {
			continue
		}
		at = append(at, h)
		if sameHost(h.name, name) {
			list = append(list, h)
		}
	}
	if len(list) == 0 && !slices.ContainsFunc(at, func(h *host) bool { return h.name != at[0].name }) {
		return at
	}
	return list
}

func sameHost(a, b string) bool {
	if strings.EqualFold(a, b) {
		return true
	}
	shortA, restA, _ := strings.Cut(a, ".")
	shortB, restB, _ := strings.Cut(b, ".")
	return strings.EqualFold(shortA, shortB) && (restA == "" || restB == "")
}

// release ends what a host holds and waits for, but what is of the era keep (0: all), and its
// shares if they are of before.
func (s *Server) release(h *host, keep uint32, shares bool) {
	s.mu.Lock()
	for _, b := range h.waits {
		if keep == 0 || b.era != keep {
			s.endLocked(b)
		}
	}
	if h.shares > 0 && shares {
		for ino := range s.shares.files {
			s.shares.drop(ino, func(o lock.Owner) bool { return o.Client == h.client })
		}
		h.shares = 0
	}
	s.mu.Unlock()
	if err := s.locks.Rebooted(s.ctx, h.client, keep); err != nil {
		s.log.Error("nlm: locks of a client cannot be given up", "client", h.addr, "name", h.name, "err", err)
	}
}

// freeAll is FREE_ALL: a client that does not keep a status monitor begins
// anew.
func (s *Server) freeAll(_ context.Context, c *rpc.Call, _ *rpc.Reply) error {
	name := c.Args.String(nsm.MaxName)
	c.Args.Uint32() // state
	if err := c.Args.Err(); err != nil {
		return fmt.Errorf("%w: %w", rpc.ErrGarbageArgs, err)
	}
	s.mu.Lock()
	var list []*host
	for _, h := range s.hosts {
		if h.addr == c.Remote.Addr() && h.name == name {
			list = append(list, h)
		}
	}
	s.mu.Unlock()
	for _, h := range list {
		s.release(h, 0, true)
	}
	return nil
}
