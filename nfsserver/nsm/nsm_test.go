package nsm

import (
	"context"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"ogw/nfsserver/xdr"
)

func TestStoredPeers(t *testing.T) {
	for _, p := range []Peer{
		{"host", netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")},
		{"", netip.MustParseAddr("fe80::1"), netip.Addr{}},
		{"linked", netip.MustParseAddr("fe80::1%eth0"), netip.MustParseAddr("fe80::2%eth0")},
		{"linked", netip.MustParseAddr("fe80::1%eth0"), netip.Addr{}},
		{strings.Repeat("x", MaxName), netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("::1")},
	} {
		got, err := decodePeer(p.encode())
		if err != nil || got != p {
			t.Errorf("%v became %v, %v", p, got, err)
		}
	}
	a := Peer{Name: "a", Addr: netip.MustParseAddr("10.0.0.1")}
	b := Peer{Name: "b", Addr: a.Addr}
	if a.key() == b.key() || a.key() == (Peer{Name: "a", Addr: a.Addr, Local: b.Addr}).key() || a.key() != (Peer{Name: "a", Addr: a.Addr}).key() {
		t.Error("the key is name and both addresses")
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

// settings is a Store in memory.
type settings map[string][]byte

func (s settings) Settings(_ context.Context, prefix string) (map[string][]byte, error) {
	found := make(map[string][]byte)
	for name, v := range s {
		if strings.HasPrefix(name, prefix) {
			found[name] = v
		}
	}
	return found, nil
}

func (s settings) UpdateSetting(_ context.Context, name string, change func([]byte) ([]byte, error)) error {
	v, err := change(s[name])
	if s[name] = v; v == nil {
		delete(s, name)
	}
	return err
}

// A peer that a version before stored under another key is one, and can be forgotten.
func TestPeersOfBefore(t *testing.T) {
	p := Peer{"host", netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")}
	store := settings{"nsm/nfs/peer/2f41": p.encode()}
	cfg := Config{Store: store, Instance: "nfs", Logger: slog.New(slog.DiscardHandler)}
	for range 2 {
		m, err := Open(t.Context(), cfg)
		if err != nil || len(m.Left()) != 1 || m.Left()[0] != p || len(store) != 2 {
			t.Fatalf("%v, %v", err, store)
		}
		if err := m.Watch(t.Context(), p); err != nil || m.Len() != 1 {
			t.Error(err, m.Len())
		}
	}
	m, err := Open(t.Context(), cfg)
	if err != nil || m.Forget(t.Context(), p) != nil || len(store) != 1 || m.Len() != 0 {
		t.Errorf("%v, %v", err, store)
	}
}
