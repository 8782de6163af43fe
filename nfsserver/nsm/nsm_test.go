package nsm

import (
	"net/netip"
	"strings"
	"testing"

	"ogw/nfsserver/xdr"
)

func TestStoredPeers(t *testing.T) {
	for _, p := range []Peer{
		{"host", netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")},
		{"", netip.MustParseAddr("fe80::1"), netip.Addr{}},
		{strings.Repeat("x", MaxName), netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("::1")},
	} {
		got, err := decodePeer(p.encode())
		if err != nil || got != p {
			t.Errorf("%v became %v, %v", p, got, err)
		}
	}
	a := Peer{Name: "a", Addr: netip.MustParseAddr("10.0.0.1")}
	b := Peer{Name: "b", Addr: a.Addr}
	if a.key() == b.key() || a.key() != (Peer{Name: "a", Addr: a.Addr, Local: b.Addr}).key() {
		t.Error("the key is name and address, and nothing else")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(Peer{"host", netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")}.encode())
	f.Add([]byte{0, 0, 0, 4, 'h', 'o', 's', 't', 0, 0, 0, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := decodePeer(b); err == nil {
			if again, err := decodePeer(p.encode()); err != nil || again != p {
				t.Errorf("%v became %v, %v", p, again, err)
			}
		}
		r := xdr.NewReader(b)
		if name, _, err := decodeNotify(&r); err == nil && len(name) > maxString {
			t.Error("longer than allowed")
		}
	})
}
