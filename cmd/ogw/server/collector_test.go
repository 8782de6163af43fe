package server

import (
	"math"
	"runtime/debug"
	"testing"

	"ogw/cmd/ogw/config"
)

func TestHeapLimit(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct{ cache, dirty, machine, want int64 }{
		{128 * mib, 128 * mib, math.MaxInt64, 1024 * mib},
		{4096 * mib, 1024 * mib, 1 << 40, (2*5120 + 512) * mib},
		{128 * mib, 128 * mib, 1000 * mib, 700 * mib},
	} {
		var cfg config.Config
		cfg.Cluster.Cache, cfg.Cluster.Dirty = config.Size(c.cache), config.Size(c.dirty)
		if got := heapLimit(&cfg, c.machine); got != c.want {
			t.Errorf("cache %d, dirty %d, machine %d: limit %d, want %d", c.cache, c.dirty, c.machine, got, c.want)
		}
	}
	if m := machineMemory(); m < 64*mib || m == math.MaxInt64 {
		t.Errorf("the machine has %d bytes", m)
	}
}

// What the operator says with Go's own variables stands.
func TestTuneCollector(t *testing.T) {
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)
	t.Cleanup(func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	})
	set := func() (int, int64) {
		now := debug.SetGCPercent(100)
		debug.SetGCPercent(now)
		return now, debug.SetMemoryLimit(-1)
	}
	cfg := &config.Config{}
	TuneCollector(cfg, func(name string) string { return map[string]string{"GOGC": "50", "GOMEMLIMIT": "1GiB"}[name] })
	if p, l := set(); p != 100 || l != limit {
		t.Errorf("the operator's settings became %d %%, %d bytes", p, l)
	}
	TuneCollector(cfg, func(string) string { return "" })
	if p, l := set(); p != gcPercent || l != heapLimit(cfg, machineMemory()) {
		t.Errorf("%d %%, %d bytes", p, l)
	}
}
