package httpapi

import (
	"net/http"
	"net/netip"
	"strconv"
)

// ConditionKey is what a condition key of policies, "aws:" and a name in lower case, is
// worth for a request, whatever its protocol: the client's address as trusted proxies
// report it, whether TLS came here, and what the client calls itself.
func ConditionKey(r *http.Request, name string) (string, bool) {
	switch name {
	case "sourceip":
		a, err := netip.ParseAddrPort(r.RemoteAddr)
		return a.Addr().Unmap().WithZone("").String(), err == nil
	case "securetransport":
		return strconv.FormatBool(r.TLS != nil), true
	case "useragent":
		return r.UserAgent(), r.UserAgent() != ""
	case "referer":
		return r.Referer(), r.Referer() != ""
	}
	return "", false
}
