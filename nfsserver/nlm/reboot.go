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

// noteState remembers the state number that a client sends with its locks: a
// notice of the same state that comes late is not about them.
func (s *Server) noteState(h *host, state uint32) {
	if state == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h.state = state
}

// rebooted frees what a client held before it rebooted (SM_NOTIFY).
func (s *Server) rebooted(from netip.Addr, name string, state uint32) {
	for _, h := range s.match(from, name) {
		s.mu.Lock()
		known := h.state == state && state != 0
		h.state = state
		h.port = 0
		s.mu.Unlock()
		if known {
			continue
		}
		s.log.Info("nlm: client has rebooted, its locks are free", "client", from, "name", h.name,
			"state", state, "locks", s.locks.ClientCount(h.client))
		s.release(h)
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

// release ends all that a host holds and waits for.
func (s *Server) release(h *host) {
	s.mu.Lock()
	for _, b := range h.waits {
		s.endLocked(b)
	}
	if h.shares > 0 {
		for ino := range s.shares.files {
			s.shares.drop(ino, func(o lock.Owner) bool { return o.Client == h.client })
		}
		h.shares = 0
	}
	s.mu.Unlock()
	s.locks.ReleaseClient(h.client)
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
		s.release(h)
	}
	return nil
}
