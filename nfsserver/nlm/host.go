package nlm

import (
	"context"
	"encoding/binary"
	"net/netip"
	"strings"
	"sync"
	"time"

	"ogw/nfsserver/nsm"
	"ogw/nfsserver/rpc"
	"ogw/vfs/clients/subscriber"
	"ogw/vfs/lock"
)

const (
	// maxHosts bounds the clients that are known at a time; those that hold
	// nothing make room. A client chooses its name, so each address has its part of
	// them, addressHosts at least.
	maxHosts, addressHosts = 2 * nsm.MaxPeers, 16
	// idleForget is how long a client without locks is remembered, so that
	// one that locks now and then does not cost a durable write each time.
	idleForget = 5 * time.Minute
	// sweepInterval is how often idle clients are looked for.
	sweepInterval = time.Minute
)

// clientPrefix distinguishes NFS clients from those of other doors.
const clientPrefix = lock.RemotePrefix

// caller is what a call shows about who sent it. It outlives the call.
type caller struct {
	remote  netip.Addr
	local   netip.Addr
	network string // "tcp" or "udp"
}

func callerOf(c *rpc.Call) caller {
	k := caller{remote: c.Remote.Addr(), local: c.Local.Addr(), network: "tcp"}
	if c.Datagram() {
		k.network = "udp"
	}
	return k
}

// clientName is the lock.Owner.Client of a host: its address, the one of this server that
// it uses, its name. Clients number their processes for each address of a server anew.
func clientName(k caller, name string) string {
	return clientPrefix + k.remote.String() + " " + k.local.WithZone("").String() + " " + name
}

// ownerOf returns the owner of a request: the process number, then the opaque
// handle.
func ownerOf(client string, svid uint32, oh []byte) lock.Owner {
	id := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(oh)), svid)
	return lock.Owner{Client: client, ID: string(append(id, oh...))}
}

// splitOwner is the inverse of ownerOf; ok is false for other doors' owners.
func splitOwner(o lock.Owner) (svid uint32, oh []byte, ok bool) {
	if !strings.HasPrefix(o.Client, clientPrefix) || len(o.ID) < 4 {
		return 0, nil, false
	}
	id := []byte(o.ID)
	return binary.BigEndian.Uint32(id), id[4:], true
}

// host is a client machine.
type host struct {
	name   string
	addr   netip.Addr
	local  netip.Addr     // the address of this server that it uses
	key    subscriber.Key // whose part of all that is bounded it has
	client string

	mu      sync.Mutex // covers Watch and Forget
	watched bool       // durable

	// Guarded by Server.mu.
	network string
	users   int // calls that run
	waits   map[blockKey]*blocked
	state   uint32    // of its status monitor, 0: unknown
	last    time.Time // when users became 0
	port    uint16    // of its NLM, 0: ask its portmapper
}

// parseClient is the inverse of clientName.
func parseClient(client string) (k caller, name string, ok bool) {
	text, ok := strings.CutPrefix(client, clientPrefix)
	parts := strings.SplitN(text, " ", 3)
	if !ok || len(parts) < 3 {
		return k, "", false
	}
	var err error
	k.network = "tcp"
	k.remote, err = netip.ParseAddr(parts[0])
	k.local, _ = netip.ParseAddr(parts[1])
	return k, parts[2], err == nil
}

func newHost(k caller, name string) *host {
	return &host{name: name, addr: k.remote, local: k.local, network: k.network, key: subscriber.Of(k.remote),
		client: clientName(k, name), waits: make(map[blockKey]*blocked)}
}

// addLocked makes h known. It has its place already.
func (s *Server) addLocked(h *host) {
	s.hosts[h.client] = h
	s.locks.SetAccount(h.client, clientPrefix+netip.Addr(h.key).String())
}

// dropLocked is the opposite of addLocked, for a host without locks; it gives
// the place back.
func (s *Server) dropLocked(h *host) {
	delete(s.hosts, h.client)
	s.locks.SetAccount(h.client, "")
	s.known.Give(h.key, 1)
}

func (h *host) peer() nsm.Peer { return nsm.Peer{Name: h.name, Addr: h.addr, Local: h.local} }

// enter returns the host that sent a call, known from now on until leave.
func (s *Server) enter(k caller, name string) (*host, error) {
	client := clientName(k, name)
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hosts[client]
	if h == nil {
		h = newHost(k, name)
		if !s.known.Take(h.key, 1) && !(s.evictLocked(h.key) && s.known.Take(h.key, 1)) {
			return nil, statNoLocks
		}
		s.addLocked(h)
	}
	h.users++
	h.network = k.network
	return h, nil
}

func (s *Server) leave(h *host) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h.users--
	h.last = time.Now()
}

// evictLocked drops a host that is nothing but known, one of key if there is.
func (s *Server) evictLocked(key subscriber.Key) bool {
	var idle *host
	for _, h := range s.hosts {
		if (idle == nil || h.key == key) && s.idleLocked(h) {
			if idle = h; h.key == key {
				break
			}
		}
	}
	if idle == nil {
		return false
	}
	s.dropLocked(idle)
	return true
}

// idleLocked reports whether h is nothing but known.
func (s *Server) idleLocked(h *host) bool {
	if h.users+len(h.waits) > 0 || s.locks.ClientCount(h.client) > 0 || !h.mu.TryLock() {
		return false
	}
	defer h.mu.Unlock()
	return !h.watched
}

// watch makes the host durable.
func (s *Server) watch(ctx context.Context, h *host) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watched {
		return nil
	}
	if err := s.monitor.Watch(ctx, h.peer()); err != nil {
		return err
	}
	h.watched = true
	return nil
}

// sweep forgets hosts that have held nothing for a while.
func (s *Server) sweep(ctx context.Context, idle time.Duration) {
	if s.inOwnGrace() {
		return // their locks are still to come
	}
	s.mu.Lock()
	list := make([]*host, 0, len(s.hosts))
	for _, h := range s.hosts {
		list = append(list, h)
	}
	s.mu.Unlock()
	for _, h := range list {
		if err := s.forget(ctx, h, idle); err != nil {
			s.log.Warn("nlm: a client without locks cannot be forgotten", "client", h.addr, "name", h.name, "err", err)
			return // the store is away; next time
		}
	}
}

// forget drops h if it holds nothing. With h.mu held nobody gets a lock who
// was not durable before; whoever is about to, counts as a user.
func (s *Server) forget(ctx context.Context, h *host, idle time.Duration) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.mu.Lock()
	busy := h.users+len(h.waits) > 0 || time.Since(h.last) < idle
	s.mu.Unlock()
	if busy || s.locks.ClientCount(h.client) > 0 {
		return nil
	}
	if h.watched {
		if err := s.monitor.Forget(ctx, h.peer()); err != nil {
			return err
		}
		h.watched = false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.users == 0 && s.hosts[h.client] == h {
		s.dropLocked(h)
	}
	return nil
}
