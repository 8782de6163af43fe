package share

import "net/netip"

// Key is a client: all that comes from one address.
type Key netip.Addr

// subscriberBits is the part of an IPv6 address that tells one subscriber
// from another (RFC 6177); the rest is theirs to choose.
const subscriberBits = 64

// KeyOf returns the client behind an address.
func KeyOf(a netip.Addr) Key {
	a = a.Unmap().WithZone("")
	if a.Is6() {
		p, _ := a.Prefix(subscriberBits) // 64 of 128: cannot fail
		a = p.Addr()
	}
	return Key(a)
}
