package config

import (
	"slices"
	"testing"
)

func TestReservedBuckets(t *testing.T) {
	c := &Config{Gateways: []Gateway{
		{Domains: []string{"S3.o.corp.example."}}, {BareHosts: true}, {},
		{Domains: []string{"corp.example", "other.example"}},
	}}
	want := []string{"corp.example", "o", "other.example", "s3.o", "s3.o.corp.example"}
	got := c.ReservedBuckets()
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for i, n := range []int{3, 3, 0, 3} {
		if got := c.DomainsAt(&c.Gateways[i]); len(got) != n {
			t.Errorf("gateway %d knows %q", i, got)
		}
	}
}
