package rpc

import (
	"net"
	"net/netip"

	"ogw/vfs/clients/subscriber"
)

// yieldSample is how many connections of one client are looked at for the one
// that yields: enough to find an idle one where most are, and no more work in
// a flood of new ones.
const yieldSample = 64

// connTable holds the connections, by client. Server.mu guards it.
type connTable struct {
	max     int
	all     map[*conn]struct{}
	clients map[subscriber.Key]map[*conn]struct{}
}

func newConnTable(max int) connTable {
	return connTable{max: max, all: make(map[*conn]struct{}), clients: make(map[subscriber.Key]map[*conn]struct{})}
}

// add takes a connection in. If there is no room, one of the client that has
// the most yields to it, and is returned to be closed; a client yields to
// those alone that have fewer than it would be left with. ok is false if
// nobody does.
func (t *connTable) add(c *conn) (yields *conn, ok bool) {
	if len(t.all) >= t.max {
		if yields = t.yielding(c.client); yields == nil {
			return nil, false
		}
		t.remove(yields)
	}
	t.all[c] = struct{}{}
	of := t.clients[c.client]
	if of == nil {
		of = make(map[*conn]struct{})
		t.clients[c.client] = of
	}
	of[c] = struct{}{}
	return yields, true
}

// remove takes a connection out; it may be out already.
func (t *connTable) remove(c *conn) {
	delete(t.all, c)
	of := t.clients[c.client]
	if delete(of, c); len(of) == 0 {
		delete(t.clients, c.client)
	}
}

// yielding chooses the connection that makes room for a new one of a client:
// of some of the greediest's the one that has been still for the longest time,
// first of those without a call in flight.
func (t *connTable) yielding(to subscriber.Key) (found *conn) {
	var greediest map[*conn]struct{}
	for _, of := range t.clients {
		if len(of) > len(greediest) {
			greediest = of
		}
	}
	if len(greediest) <= len(t.clients[to])+1 {
		return nil
	}
	looked := 0
	for c := range greediest { // in no order
		if found == nil || c.yieldsBefore(found) {
			found = c
		}
		if looked++; looked == yieldSample {
			break
		}
	}
	return found
}

// yieldsBefore reports which of two connections would miss less.
func (c *conn) yieldsBefore(o *conn) bool {
	if busy, other := len(c.slots) > 0, len(o.slots) > 0; busy != other {
		return other
	}
	return c.still.Load() < o.still.Load()
}

func (c *conn) info() ClientInfo {
	i := ClientInfo{Remote: c.remote, Since: c.since, Calls: c.calls.Load(),
		InFlight: len(c.slots), In: c.in.Load(), Out: c.out.Load()}
	if m := c.machine.Load(); m != nil {
		i.Machine = *m
	}
	return i
}

// addrPort returns the address of a TCP or UDP endpoint, IPv4 as such.
func addrPort(a net.Addr) netip.AddrPort {
	if x, ok := a.(interface{ AddrPort() netip.AddrPort }); ok {
		ap := x.AddrPort()
		return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	}
	return netip.AddrPort{}
}
