package nlm

import (
	"net/netip"
	"strings"

	"ogw/vfs/lock"
)

// Owner is who holds a lock over NFS.
type Owner struct {
	Addr   netip.Addr
	Server netip.Addr // the address of this server that the client uses
	Host   string     // as the client calls itself
	PID    uint32     // of the process there
	ID     []byte     // opaque; Linux: the process and the host, in text
}

// OwnerOf takes an owner apart; ok is false for those of other doors.
func OwnerOf(o lock.Owner) (n Owner, ok bool) {
	pid, id, ok := splitOwner(o)
	if !ok {
		return n, false
	}
	text := strings.SplitN(strings.TrimPrefix(o.Client, clientPrefix), " ", 3)
	if len(text) < 3 {
		return n, false
	}
	addr, err := netip.ParseAddr(text[0])
	server, _ := netip.ParseAddr(text[1])
	return Owner{Addr: addr, Server: server, Host: text[2], PID: pid, ID: id}, err == nil
}

// Share is a share reservation (SHARE).
type Share struct {
	File  uint64
	Owner lock.Owner
	// Access and Deny are what the holder does and what others must not do:
	// 1 read, 2 write, 3 both.
	Access, Deny uint32
}

// Shares returns the share reservations, at most max; more reports whether there
// are others.
func (s *Server) Shares(max int) (list []Share, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ino, shares := range s.shares.files {
		for _, x := range shares {
			if len(list) >= max {
				return list, true
			}
			list = append(list, Share{File: ino, Owner: x.owner, Access: x.access, Deny: x.deny})
		}
	}
	return list, false
}

// Holder is a client that holds something, or waits for it.
type Holder struct {
	Addr   netip.Addr
	Server netip.Addr // the address of this server that it uses
	Host   string
	Locks  int // held, and requests that wait
	Shares int
}

// Holders returns the clients of an address or a host name that hold
// anything. Host names may come with or without their domain, as in SM_NOTIFY.
func (s *Server) Holders(client string) (list []Holder) {
	for _, h := range s.named(client) {
		if x := s.holder(h); x.Locks+x.Shares > 0 {
			list = append(list, x)
		}
	}
	return list
}

// Free gives up all that Holders(client) hold and wait for, as if they had
// rebooted, and returns what that was.
func (s *Server) Free(client string) (list []Holder) {
	for _, h := range s.named(client) {
		if x := s.holder(h); x.Locks+x.Shares > 0 {
			s.release(h, 0, true)
			list = append(list, x)
		}
	}
	return list
}

func (s *Server) holder(h *host) Holder {
	s.mu.Lock()
	shares := h.shares
	s.mu.Unlock()
	return Holder{Addr: h.addr, Server: h.local, Host: h.name, Locks: s.locks.ClientCount(h.client), Shares: shares}
}

// named returns the hosts with an address or a name.
func (s *Server) named(client string) (list []*host) {
	addr, err := netip.ParseAddr(client)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.hosts {
		if err == nil && h.addr == addr.Unmap() || err != nil && sameHost(h.name, client) {
			list = append(list, h)
		}
	}
	return list
}
