// Package subscriber decides by their addresses which clients are one, for the
// doors that divide what they have among clients.
package subscriber

import "net/netip"

// Key is a client: all that comes from one address, or from the network of one
// subscriber. The zero value is whoever has no address.
type Key netip.Addr

// prefixBits is the part of an IPv6 address that distinguishes one subscriber from
// another (RFC 6177); the rest is theirs to choose.
const prefixBits = 64

// Of returns the client behind an address.
func Of(a netip.Addr) Key {
	a = a.Unmap().WithZone("")
	if a.Is6() {
		p, _ := a.Prefix(prefixBits) // 64 of 128: cannot fail
		a = p.Addr()
	}
	return Key(a)
}

// String returns the address, of an IPv6 subscriber the first one.
func (k Key) String() string { return netip.Addr(k).String() }
