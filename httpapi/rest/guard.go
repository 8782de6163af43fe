package rest

import (
	"fmt"
	"net"
	"net/http"
	"strings"

	"ogw/httpapi/apierr"
	"ogw/httpapi/peer"
)

// guard keeps web pages from using an open door through the browser of a
// person who runs one: a page can send a POST to any address, and with a DNS
// name of its own that resolves to loopback it could read the answers too.
// Browsers keep basic credentials and send them along, so a door with users
// needs the first half of that. Tokens are not sent by themselves.
type guard struct {
	checkOrigin bool
	checkHost   bool
	hosts       map[string]bool
	origin      *http.CrossOriginProtection
}

func newGuard(c Config) guard {
	open := len(c.Tokens) == 0 && !c.Users
	g := guard{checkOrigin: open || c.Users, checkHost: open,
		hosts: map[string]bool{}, origin: http.NewCrossOriginProtection()}
	for _, o := range c.Origins {
		_ = g.origin.AddTrustedOrigin(o) // AnyOrigin is none: what checks has no such
	}
	for _, h := range c.Hosts {
		g.hosts[strings.ToLower(h)] = true
	}
	return g
}

func (g *guard) check(r *http.Request) error {
	if g.checkOrigin {
		if err := g.origin.Check(r); err != nil {
			return fmt.Errorf("%w: %w", apierr.ErrCrossOrigin, err)
		}
	}
	if g.checkHost && !throughSocket(r) && !g.knows(r.Host) {
		return fmt.Errorf("%w: host %q is not loopback; add it to the gateway's hosts", apierr.ErrForbidden, r.Host)
	}
	return nil
}

// throughSocket reports whether r came through a Unix socket, as no page of a browser
// can.
func throughSocket(r *http.Request) bool {
	who, err := peer.Of(r.Context())
	return err == nil && who.Socket
}

// knows reports whether host cannot be a name that somebody else controls.
func (g *guard) knows(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	return host == "" || host == "localhost" || strings.HasSuffix(host, ".localhost") ||
		net.ParseIP(host) != nil || g.hosts[host]
}
