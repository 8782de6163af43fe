package session

import "net"

// warnOfLoopback logs addresses by which gateways of other machines cannot be reached, as where the
// metadata are behind a proxy on each machine. Whoever comes looks at those that are there.
func (l *Lease) warnOfLoopback() {
	seen := l.peers.seen.Load()
	if seen == nil || l.me.Address == "" {
		return
	}
	mine := isLoopback(l.me.Address)
	for i := range *seen {
		o := &(*seen)[i]
		if o.Address == "" || o.Host == l.me.Host || l.ended(o.ID) {
			continue
		}
		if isLoopback(o.Address) {
			l.log.Warn("a gateway of another host tells the others a loopback address, where they do not reach it: set cluster.peer_address there",
				"host", o.Host, "address", o.Address)
		}
		if mine {
			l.log.Warn("gateways of other hosts do not reach this one at a loopback address: set cluster.peer_address",
				"address", l.me.Address, "host", o.Host)
			mine = false // once
		}
	}
}

// isLoopback reports whether HOST:PORT is on the machine of who connects.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
}
