package httpapi

import (
	"slices"
	"strings"
)

// BucketBelow returns the bucket that a host name has below a service domain:
// LABEL in LABEL.DOMAIN, "" for DOMAIN itself. below is false for a host that
// is elsewhere. Domains may lie below each other: a service domain is no
// bucket of another one, and a host belongs to the longest that it ends in,
// so that their order means nothing. All are in lower case.
func BucketBelow(host string, domains []string) (bucket string, below bool) {
	if slices.Contains(domains, host) {
		return "", true
	}
	for _, d := range domains {
		label, ok := strings.CutSuffix(host, "."+d)
		if ok && label != "" && (!below || len(label) < len(bucket)) {
			bucket, below = label, true
		}
	}
	return bucket, below
}
