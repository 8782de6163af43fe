package subscriber

import (
	"net/netip"
	"testing"
)

func TestOf(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"127.0.0.1", "127.0.0.1", true},
		{"127.0.0.1", "127.0.0.2", false},
		{"2001:db8::1", "2001:db8::ffff:1", true},
		{"2001:db8::1", "2001:db8:0:1::1", false},
		{"::ffff:10.0.0.1", "10.0.0.1", true},
		{"fe80::1%eth0", "fe80::2%eth1", true},
	} {
		if got := Of(netip.MustParseAddr(c.a)) == Of(netip.MustParseAddr(c.b)); got != c.same {
			t.Errorf("%s and %s: same is %v", c.a, c.b, got)
		}
	}
	if Of(netip.Addr{}) != (Key{}) {
		t.Error("who has no address is somebody")
	}
	if s := Of(netip.MustParseAddr("2001:db8::1")).String(); s != "2001:db8::" {
		t.Error(s)
	}
}
