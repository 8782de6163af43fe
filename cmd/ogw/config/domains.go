package config

import "strings"

// Domains returns the service domains of all S3 gateways, in lower case.
func (c *Config) Domains() []string {
	var out []string
	for _, g := range c.Gateways {
		for _, d := range g.Domains {
			out = append(out, strings.ToLower(strings.Trim(d, ".")))
		}
	}
	return out
}

// DomainsAt returns the service domains that a gateway knows: none where no
// host name is a bucket, and otherwise those of all gateways. No client means a
// bucket by the name of a service, whichever gateway it asks.
func (c *Config) DomainsAt(g *Gateway) []string {
	if len(g.Domains) == 0 && !g.BareHosts {
		return nil
	}
	return c.Domains()
}

// ReservedBuckets returns the names that no bucket may get, nor one that ends in
// a dot and such a name: service domains, and where one lies below another,
// what leads there from the upper one.
//
//	corp.example, s3.o.corp.example   those, s3.o and o
//
// A bucket of the name would be at a service's address.
func (c *Config) ReservedBuckets() []string {
	domains := c.Domains()
	out := domains
	for _, upper := range domains {
		for _, d := range domains {
			label, below := strings.CutSuffix(d, "."+upper)
			for below {
				out = append(out, label)
				_, label, below = strings.Cut(label, ".")
			}
		}
	}
	return out
}
