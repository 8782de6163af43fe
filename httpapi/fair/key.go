package fair

import (
	"net/netip"

	"ogw/vfs/clients/subscriber"
)

// Key is a client. The zero value is whoever has no address: all that come
// through a Unix socket.
type Key struct {
	addr subscriber.Key
	user string
}

// Address returns the client behind a remote address as net/http has it,
// "host:port".
func Address(remote string) Key { return Key{addr: Subscriber(remote)} }

// Subscriber is Address for what doors of other kinds know as well.
func Subscriber(remote string) subscriber.Key {
	a, err := netip.ParseAddrPort(remote)
	if err != nil {
		return subscriber.Key{}
	}
	return subscriber.Of(a.Addr())
}

func addressKey(a netip.Addr) Key { return Key{addr: subscriber.Of(a)} }

// User returns the client of requests that proved to be a user's.
func User(id string) Key { return Key{user: id} }
