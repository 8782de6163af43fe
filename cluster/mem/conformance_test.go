package mem

import (
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/clustertest"
)

func settings() map[string]Options {
	distributed := Distributed(1)
	distributed.Latency = 20 * time.Microsecond // the suite makes many calls
	return map[string]Options{"plain": {}, "distributed": distributed}
}

func open(t *testing.T, o Options) *cluster.Cluster {
	c := New(o)
	t.Cleanup(func() { c.Close() })
	return c
}

func TestKV(t *testing.T) {
	for name, o := range settings() {
		t.Run(name, func(t *testing.T) {
			clustertest.TestKV(t, func(t *testing.T) cluster.KV { return open(t, o).KV })
		})
	}
}

func TestBlobs(t *testing.T) {
	for name, o := range settings() {
		t.Run(name, func(t *testing.T) {
			clustertest.TestBlobs(t, func(t *testing.T) cluster.Blobs { return open(t, o).Blobs })
		})
	}
}

func TestRestart(t *testing.T) {
	clustertest.TestRestart(t, func(t *testing.T) clustertest.Restarter {
		o := Options{Disk: NewDisk()}
		var c *cluster.Cluster
		return clustertest.Restarter{
			Open: func(t *testing.T) *cluster.Cluster {
				c = open(t, o)
				return c
			},
			PowerCut: func(t *testing.T) {
				c.Blobs.Close()
				c.KV.(*KV).Abandon()
				o.Disk.PowerCut()
			},
		}
	})
}
