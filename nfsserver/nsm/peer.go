package nsm

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/netip"

	"ogw/nfsserver/xdr"
)

// MaxName bounds the name of a host in bytes. The protocol allows 1024
// (SM_MAXSTRLEN), host names have 255 at the most (RFC 1123 section 2.1).
const MaxName = 255

// Peer is a client that may hold locks.
type Peer struct {
	Name  string     // as it calls itself
	Addr  netip.Addr // where it is
	Local netip.Addr // by which address it knows this server
}

// peerFormat is the version of stored peers.
const peerFormat = 1

// maxZone bounds the zone of a link-local address, the name of a network interface (IFNAMSIZ).
const maxZone = 15

var errFormat = errors.New("nsm: stored peer cannot be decoded")

// encode returns the stored form: version, name, both addresses, and their zones if there
// are any, which versions before report as damage.
func (p Peer) encode() []byte {
	var w xdr.Writer
	w.Uint32(peerFormat)
	w.String(p.Name)
	w.Opaque(p.Addr.AsSlice())
	w.Opaque(p.Local.AsSlice())
	if p.Addr.Zone() != "" || p.Local.Zone() != "" {
		w.String(p.Addr.Zone())
		w.String(p.Local.Zone())
	}
	return w.B
}

func decodePeer(b []byte) (Peer, error) {
	r := xdr.NewReader(b)
	if r.Uint32() != peerFormat {
		return Peer{}, errFormat
	}
	p := Peer{Name: r.String(MaxName)}
	addr, ok := netip.AddrFromSlice(r.Opaque(16))
	local, _ := netip.AddrFromSlice(r.Opaque(16)) // may be unknown
	if r.Len() > 0 {
		addr, local = addr.WithZone(r.String(maxZone)), local.WithZone(r.String(maxZone))
	}
	if r.Err() != nil || !ok || r.Len() != 0 {
		return Peer{}, errFormat
	}
	p.Addr, p.Local = addr, local
	return p, nil
}

// key is the name of the peer in the store, bounded and without the bytes
// that a name may have. Who knows this server by two addresses is two peers: it has to hear
// of a restart of each.
func (p Peer) key() string {
	h := sha256.Sum256([]byte(p.Addr.String() + "\x00" + p.Local.String() + "\x00" + p.Name))
	return hex.EncodeToString(h[:16])
}
