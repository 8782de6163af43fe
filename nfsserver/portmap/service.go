package portmap

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Program number, versions and port of portmappers (RFC 1833).
const (
	ProgramNumber = 100000
	Port          = 111

	version2 = 2 // the portmapper protocol
	version3 = 3 // rpcbind
	version4 = 4
)

// Procedures. Those of versions 3 and 4 share the numbers of version 2 as
// far as they go.
const (
	procNull    = 0
	procSet     = 1
	procUnset   = 2
	procGetPort = 3 // GETADDR in rpcbind
	procDump    = 4
	procGetTime = 6
	maxProc     = 12
)

// Protocol numbers of version 2 (RFC 1833 section 3.1).
const (
	protoTCP = 6
	protoUDP = 17
)

// maxString bounds netids, addresses and owners on the wire.
const maxString = 128

// Service is a version of a program that listens somewhere.
type Service struct {
	Prog, Vers uint32
	Network    string // "tcp" or "udp"
	Addr       netip.AddrPort
}

// netID returns the transport's name (RFC 5665 section 5.1).
func netID(network string, a netip.Addr) string {
	if a.Unmap().Is4() {
		return network
	}
	return network + "6"
}

// expand returns a service per address family: a socket bound to [::] takes
// IPv4 too.
func (s Service) expand() []Service {
	if s.Addr.Addr() != netip.IPv6Unspecified() {
		s.Addr = netip.AddrPortFrom(s.Addr.Addr().Unmap(), s.Addr.Port())
		return []Service{s}
	}
	four := s
	four.Addr = netip.AddrPortFrom(netip.IPv4Unspecified(), s.Addr.Port())
	return []Service{four, s}
}

func expandAll(list []Service) (out []Service) {
	for _, s := range list {
		out = append(out, s.expand()...)
	}
	return out
}

// FormatAddr returns the universal address (RFC 5665 section 5.2.3).
func FormatAddr(a netip.AddrPort) string {
	return fmt.Sprintf("%s.%d.%d", a.Addr().Unmap().WithZone(""), a.Port()>>8, a.Port()&0xff)
}

// ParseAddr reads a universal address.
func ParseAddr(s string) (netip.AddrPort, error) {
	bad := fmt.Errorf("portmap: %.60q is not a universal address", s)
	rest, low, ok := cutLast(s)
	host, high, ok2 := cutLast(rest)
	if !ok || !ok2 {
		return netip.AddrPort{}, bad
	}
	h, err1 := strconv.ParseUint(high, 10, 8)
	l, err2 := strconv.ParseUint(low, 10, 8)
	a, err3 := netip.ParseAddr(host)
	if err1 != nil || err2 != nil || err3 != nil {
		return netip.AddrPort{}, bad
	}
	return netip.AddrPortFrom(a, uint16(h<<8|l)), nil
}

func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, '.')
	if i < 0 {
		return "", "", false
	}
	return s[:i], s[i+1:], true
}
