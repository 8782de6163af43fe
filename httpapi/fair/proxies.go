package fair

import (
	"net/http"
	"net/netip"
	"strings"
)

// forwardedFor is what reverse proxies add the address of their client to.
const forwardedFor = "X-Forwarded-For"

// Forwarded gives requests that came through one of the proxies the address
// of the client that it names, as their RemoteAddr: the last one in
// X-Forwarded-For that is no proxy. What stands before that, a client wrote.
func Forwarded(next http.Handler, proxies []netip.Prefix) http.Handler {
	if len(proxies) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a, ok := forwarded(r, proxies); ok {
			r.RemoteAddr = netip.AddrPortFrom(a, 0).String()
		}
		next.ServeHTTP(w, r)
	})
}

func forwarded(r *http.Request, proxies []netip.Prefix) (client netip.Addr, ok bool) {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !within(proxies, peer.Addr().Unmap()) {
		return client, false
	}
	list := strings.Join(r.Header.Values(forwardedFor), ",")
	for list != "" {
		var last string
		if i := strings.LastIndexByte(list, ','); i >= 0 {
			list, last = list[:i], list[i+1:]
		} else {
			list, last = "", list
		}
		a, valid := parseForwarded(strings.TrimSpace(last))
		if !valid {
			break // whoever wrote this, nothing before it can be trusted
		}
		client, ok = a, true
		if !within(proxies, a) {
			break
		}
	}
	return client, ok
}

// parseForwarded reads an address, with a port as some proxies write it.
func parseForwarded(s string) (netip.Addr, bool) {
	if a, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return a.Unmap(), true
	}
	p, err := netip.ParseAddrPort(s)
	return p.Addr().Unmap(), err == nil
}
