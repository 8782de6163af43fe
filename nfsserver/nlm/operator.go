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
		err := s.release(ctx, h, 0)
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
	if err != nil {
		return err
	}
	shares, err := s.shares(ctx)
	if err != nil {
		return err
	}
	for _, f := range list {
		if f.locks == 0 || notAddr != nil && !sameHost(f.name, client) {
			continue
		}
		n := min(shares[f.client], f.locks)
		x := Holder{Addr: f.addr, Server: f.local, Host: f.name, Locks: f.locks - n, Shares: n}
		if err := fn(f.host, x); err != nil {
			return err
		}
	}
	return nil
}

// shares counts the share reservations of clients.
func (s *Server) shares(ctx context.Context) (map[string]int, error) {
	list, _, err := s.locks.List(ctx, lock.DefaultMaxLocks, func(e *lock.Entry) bool { return e.Space == lock.Share })
	counts := make(map[string]int)
	for i := range list {
		counts[list[i].Lock.Owner.Client]++
	}
	return counts, err
}
