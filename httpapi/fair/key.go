package fair

import "net/netip"

// Key is a client. The zero value is whoever has no address: all that come
// through a Unix socket.
type Key struct {
	addr netip.Addr
	user string
}

// subscriberBits is the part of an IPv6 address that tells one subscriber
// from another (RFC 6177); the rest is theirs to choose.
const subscriberBits = 64

// Address returns the client behind a remote address as net/http has it,
// "host:port".
func Address(remote string) Key {
	a, err := netip.ParseAddrPort(remote)
	if err != nil {
		return Key{}
	}
	return addressKey(a.Addr())
}

func addressKey(a netip.Addr) Key {
	a = a.Unmap().WithZone("")
	if a.Is6() {
		p, _ := a.Prefix(subscriberBits) // 64 of 128: cannot fail
		a = p.Addr()
	}
	return Key{addr: a}
}

// User returns the client of requests that proved to be a user's.
func User(id string) Key { return Key{user: id} }
