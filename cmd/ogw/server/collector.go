package server

import (
	"runtime/debug"

	"ogw/cmd/ogw/config"
)

const (
	// gcPercent is how much the heap may grow, in percent of what is in use,
	// before it is collected. Go's own 100 collects several times a second
	// under a load of small requests, because little is in use then: it cost
	// a tenth of the time of a GET of 4 KiB.
	gcPercent = 400
	// fixedMemory is what the process may need besides its configured
	// budgets: buffers of transfers, memtables, connections.
	fixedMemory = 512 << 20
	// machineShare is the part of the machine's memory, or the container's,
	// that the heap may grow to, whatever the budgets say.
	machineShare = 0.7
)

// TuneCollector sets how eagerly garbage is collected, unless GOGC and
// GOMEMLIMIT say so. The limit is soft: near it garbage is collected more
// often, and nothing fails.
func TuneCollector(c *config.Config, getenv func(string) string) {
	if getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(heapLimit(c, availableMemory(c)))
	}
}

// heapLimit leaves room for the budgets twice over: with all of them in use,
// garbage is still collected no more often than Go does by itself.
func heapLimit(c *config.Config, machine int64) int64 {
	limit := 2*(int64(c.Cluster.Cache)+int64(c.Cluster.Dirty)) + fixedMemory
	return min(limit, int64(machineShare*float64(machine)))
}
