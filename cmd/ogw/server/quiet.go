package server

import (
	"log/slog"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// quietLook is how often it is looked whether the process is quiet, and
	// quietLooks for how many of these it must be: memory is returned within a
	// minute of a load's end.
	quietLook  = 10 * time.Second
	quietLooks = 3
	// quietLoad is the share of one processor below which the process is quiet: a
	// mount that is looked at now and then, probes, metrics.
	quietLoad = 0.02
	// unusedMemory that the heap holds, at least, is worth two collections.
	unusedMemory = 16 << 20
)

// quiet returns memory to the system when a load is over. The collector runs by
// itself only when the heap grows, or after two minutes, and keeps what it freed for
// the next requests, as pools do.
type quiet struct {
	spent   func() time.Duration // processor time of the process
	unused  func() uint64        // bytes that returnMemory would return
	release func()
	log     *slog.Logger

	before time.Duration // spent, at the last look
	looks  int           // without a load
}

// watchQuiet looks until stop is called.
func watchQuiet(log *slog.Logger) (stop func()) {
	q := &quiet{spent: processorTime, unused: unusedHeap, release: returnMemory, log: log}
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		t := time.NewTicker(quietLook)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				q.look()
			case <-done:
				return
			}
		}
	})
	return func() {
		close(done)
		running.Wait()
	}
}

// look is called each quietLook. After each load it releases once.
func (q *quiet) look() {
	spent := q.spent()
	load := float64(spent-q.before) / float64(quietLook)
	q.before = spent
	if load >= quietLoad {
		q.looks = 0
		return
	}
	if q.looks++; q.looks != quietLooks {
		return
	}
	unused := q.unused()
	if unused < unusedMemory {
		return
	}
	q.release()
	now := q.spent()
	q.log.Debug("memory returned to the system", "bytes", unused, "processor", now-q.before)
	q.before = now
}

// processorTime is what the process has spent.
func processorTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// unusedHeap is what the heap holds of the system's memory beyond what was in use
// at the last collection.
func unusedHeap() uint64 {
	s := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/gc/heap/live:bytes"},
	}
	metrics.Read(s)
	held := s[0].Value.Uint64() + s[1].Value.Uint64() + s[2].Value.Uint64()
	return held - min(held, s[3].Value.Uint64())
}

// returnMemory collects twice, since pools survive one collection.
func returnMemory() {
	runtime.GC()
	debug.FreeOSMemory()
}
