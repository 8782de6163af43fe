package nlm

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"ogw/nfsserver/nsm"
	"ogw/nfsserver/rpc"
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

// rebooted frees what a client held before it rebooted (SM_NOTIFY). After an error the client
// is to say it again.
func (s *Server) rebooted(ctx context.Context, from netip.Addr, name string, state uint32) error {
	list, err := s.clients(ctx, clientPrefix+from.String()+" ")
	if err != nil {
		return err
	}
	for _, x := range match(list, name) {
		s.mu.Lock()
		x.state = state
		x.port = 0
		s.mu.Unlock()
		if err := s.release(ctx, x.host, state); err != nil {
			return err
		}
		s.log.Info("nlm: client has rebooted, its locks of before are free", "client", from, "name", x.name,
			"server", x.local, "state", state, "locks", x.locks)
	}
	return nil
}

// found is a client that is known here, or has locks, and how many: granted here or, beside
// others, anywhere.
type found struct {
	*host
	locks int
}

// clients returns those whose names begin with a prefix.
func (s *Server) clients(ctx context.Context, prefix string) (list []found, err error) {
	counts := make(map[string]int)
	if s.remotes != nil {
		all, err := s.remotes.RemoteClients(ctx, prefix)
		if err != nil {
			return nil, err
		}
		for _, x := range all {
			counts[x.Client] = x.Locks
		}
	}
	s.mu.Lock()
	for client, h := range s.hosts {
		if !strings.HasPrefix(client, prefix) {
			continue
		}
		x := found{h, counts[client]}
		if delete(counts, client); s.remotes == nil {
			x.locks = s.locks.ClientCount(client)
		}
		list = append(list, x)
	}
	s.mu.Unlock()
	for client, n := range counts {
		if k, name, ok := parseClient(client); ok {
			list = append(list, found{newHost(k, name), n})
		}
	}
	slices.SortFunc(list, func(a, b found) int { return strings.Compare(a.client, b.client) })
	return list, nil
}

// match returns those of an address that a notice is about. Only its sender's address
// counts as proof; the name distinguishes which of several behind one address. Host
// names may come with or without their domain. By which addresses of this server the
// client goes does not matter.
func match(at []found, name string) (list []found) {
	for _, x := range at {
		if sameHost(x.name, name) {
			list = append(list, x)
		}
	}
	if len(list) == 0 && !slices.ContainsFunc(at, func(x found) bool { return x.name != at[0].name }) {
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

// release ends what a host holds and waits for, but what is of the era keep (0: all).
func (s *Server) release(ctx context.Context, h *host, keep uint32) error {
	s.mu.Lock()
	for _, b := range h.waits {
		if keep == 0 || b.era != keep {
			s.endLocked(b)
		}
	}
	s.mu.Unlock()
	err := s.locks.Rebooted(ctx, h.client, keep)
	if err != nil {
		s.log.Error("nlm: locks of a client cannot be given up", "client", h.addr, "name", h.name, "err", err)
	}
	return err
}

// freeAll is FREE_ALL: a client that does not keep a status monitor begins
// anew.
func (s *Server) freeAll(ctx context.Context, c *rpc.Call, _ *rpc.Reply) error {
	name := c.Args.String(nsm.MaxName)
	c.Args.Uint32() // state
	if err := c.Args.Err(); err != nil {
		return fmt.Errorf("%w: %w", rpc.ErrGarbageArgs, err)
	}
	list, err := s.clients(ctx, clientPrefix+c.Remote.Addr().String()+" ")
	for _, x := range list {
		if err == nil && x.name == name {
			err = s.release(ctx, x.host, 0)
		}
	}
	if err != nil {
		return rpc.ErrDrop
	}
	return nil
}
