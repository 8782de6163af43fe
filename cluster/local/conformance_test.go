package local

import (
	"context"
	"testing"

	"ogw/cluster"
	"ogw/cluster/clustertest"
)

// testSegmentBytes is small, so that tests see many segments.
const testSegmentBytes = 4 << 20

func openAt(t testing.TB, o Options) *cluster.Cluster {
	t.Helper()
	if o.SegmentBytes == 0 {
		o.SegmentBytes = testSegmentBytes
	}
	c, err := Open(t.Context(), o)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestKV(t *testing.T) {
	clustertest.TestKV(t, func(t *testing.T) cluster.KV { return openAt(t, Options{Dir: t.TempDir()}).KV })
}

func TestBlobs(t *testing.T) {
	clustertest.TestBlobs(t, func(t *testing.T) cluster.Blobs { return openAt(t, Options{Dir: t.TempDir()}).Blobs })
}

func TestReopen(t *testing.T) {
	clustertest.TestRestart(t, func(t *testing.T) clustertest.Restarter {
		o := Options{Dir: t.TempDir()}
		return clustertest.Restarter{Open: func(t *testing.T) *cluster.Cluster { return openAt(t, o) }}
	})
}

var ctx = context.Background()
