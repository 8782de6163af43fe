package rados

import (
	"context"
	"testing"

	"ogw/cluster"
	"ogw/cluster/clustertest"
)

func openMem(t *testing.T, pool *memPool) *Blobs {
	t.Helper()
	b, err := Open(context.Background(), pool)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// The contract over a pool in memory; integration/engines runs it over Ceph.
func TestConformance(t *testing.T) {
	clustertest.TestBlobs(t, func(t *testing.T) cluster.Blobs { return openMem(t, newMemPool()) })
	clustertest.TestBlobClients(t, func(t *testing.T) (a, b cluster.Blobs) {
		pool := newMemPool()
		return openMem(t, pool), openMem(t, pool)
	})
}
