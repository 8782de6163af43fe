package s3

import (
	"net"
	"net/netip"
	"strings"

	"ogw/httpapi"
)

// bucketOfHost returns the bucket that the Host header names (DESIGN, section
// 7), or "" for path style:
//
//	service domain, IP address, localhost, single label   path style
//	bucket.service-domain                                 bucket, of the longest
//	any other host name                                   the name is the bucket
//
// The last holds with configured domains, or with BareHosts. It never depends
// on which buckets exist: whoever may make one could take over the name by
// which others reach the service.
func (q *request) bucketOfHost() string {
	if !q.cfg.BareHosts && len(q.cfg.Domains) == 0 {
		return ""
	}
	host := strings.ToLower(strings.TrimSuffix(hostName(q.r.Host), "."))
	if bucket, below := httpapi.BucketBelow(host, q.cfg.Domains); below {
		return bucket
	}
	if host == "localhost" || !strings.Contains(host, ".") || isIP(host) {
		return ""
	}
	return host
}

// hostName returns a Host header without its port.
func hostName(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		return h
	}
	return strings.Trim(host, "[]")
}

func isIP(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}
