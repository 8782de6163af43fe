package nlm

import (
	"context"
	"net/netip"

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
	k, name, ok := parseClient(o.Client)
	return Owner{Addr: k.remote, Server: k.local, Host: name, PID: pid, ID: id}, ok
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
// anything. Host names may come with or without their domain, as in SM_NOTIFY. Beside others
// it counts whichever gateway granted it.
func (s *Server) Holders(ctx context.Context, client string) (list []Holder, err error) {
	err = s.holders(ctx, client, func(_ *host, x Holder) error {
		list = append(list, x)
		return nil
	})
	return list, err
}

// Free gives up all that Holders(client) hold and wait for, as if they had
// rebooted, and returns what that was.
func (s *Server) Free(ctx context.Context, client string) (list []Holder, err error) {
	err = s.holders(ctx, client, func(h *host, x Holder) error {
		err := s.release(ctx, h, 0, true)
		if err == nil {
			list = append(list, x)
		}
		return err
	})
	return list, err
}

// holders calls fn for those that have an address or a name, and hold anything.
func (s *Server) holders(ctx context.Context, client string, fn func(*host, Holder) error) error {
	addr, notAddr := netip.ParseAddr(client)
	addr = addr.Unmap()
	prefix := clientPrefix
	if notAddr == nil {
		prefix += addr.String() + " "
	}
	list, err := s.clients(ctx, prefix)
	for _, f := range list {
		if notAddr != nil && !sameHost(f.name, client) {
			continue
		}
		s.mu.Lock()
		x := Holder{Addr: f.addr, Server: f.local, Host: f.name, Locks: f.locks, Shares: f.shares}
		s.mu.Unlock()
		if x.Locks+x.Shares == 0 {
			continue
		}
		if err := fn(f.host, x); err != nil {
			return err
		}
	}
	return err
}
