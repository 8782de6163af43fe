package s3

import (
	"errors"
	"net"
	"net/netip"
	"strings"

	"ogw/vfs"
)

// bucketOfHost returns the bucket that the Host header names (DESIGN, section
// 7), or "" for path style:
//
//	service domain, IP address, localhost, single label   path style
//	bucket.service-domain                                 bucket
//	any other host name                                   the name is the bucket
//
// Without a configured domain, another host name that is no bucket means path
// style: it is how the server happens to be called.
func (q *request) bucketOfHost() (string, error) {
	host := strings.ToLower(strings.TrimSuffix(hostName(q.r.Host), "."))
	for _, d := range q.cfg.Domains {
		if host == d {
			return "", nil
		}
		if bucket, ok := strings.CutSuffix(host, "."+d); ok && bucket != "" {
			return bucket, nil
		}
	}
	if host == "localhost" || !strings.Contains(host, ".") || isIP(host) {
		return "", nil
	}
	if len(q.cfg.Domains) > 0 {
		return host, nil
	}
	if !vfs.ValidBucketName(host) {
		return "", nil
	}
	info, err := q.fs.HeadBucket(q.ctx, host)
	if errors.Is(err, vfs.ErrNoSuchBucket) {
		return "", nil
	}
	q.info = &info
	return host, err
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
