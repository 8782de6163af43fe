package nfsserver

import (
	"sync/atomic"
	"time"

	"ogw/nfsserver/nlm"
	"ogw/nfsserver/nsm"
	"ogw/nfsserver/rpc"
)

// latencyBounds are the upper bounds of the latency buckets; the last bucket
// has none.
var latencyBounds = [...]time.Duration{
	50 * time.Microsecond, 100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond,
	25 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond, 2 * time.Second, 10 * time.Second,
}

// LatencyBounds returns the upper bounds of ProcStats.Buckets.
func LatencyBounds() []time.Duration { return latencyBounds[:] }

// ProcStats are the figures of one procedure since the start.
type ProcStats struct {
	Program  string // "nfs", "mount", "nlm" or "nsm"
	Proc     string
	Calls    uint64
	Errors   uint64 // calls that were answered with anything but success
	Replayed uint64 // of Calls, answered from the duplicate request cache
	In, Out  uint64 // bytes
	Total    time.Duration
	Buckets  []uint64 // calls by latency, not cumulative; one more than LatencyBounds
}

// maxProcs is above every procedure number served.
const maxProcs = 24

type procStats struct {
	calls, errors, replayed, in, out, totalNS atomic.Uint64
	buckets                                   [len(latencyBounds) + 1]atomic.Uint64
}

type stats struct {
	nfs, mount, nlm, nsm [maxProcs]procStats
}

func (s *stats) observe(e rpc.Event) {
	set := &s.nfs
	switch e.Prog {
	case ProgramMount:
		set = &s.mount
	case nlm.ProgramNumber:
		set = &s.nlm
	case nsm.ProgramNumber:
		set = &s.nsm
	}
	if e.Proc >= maxProcs {
		return
	}
	p := &set[e.Proc]
	n := uint64(e.Calls)
	p.calls.Add(n)
	if e.Accept != rpc.Success || e.Status != 0 {
		p.errors.Add(n)
	}
	if e.Replayed {
		p.replayed.Add(n)
	}
	p.in.Add(uint64(e.In))
	p.out.Add(uint64(e.Out))
	p.totalNS.Add(n * uint64(e.Duration))
	i := 0
	for i < len(latencyBounds) && e.Duration > latencyBounds[i] {
		i++
	}
	p.buckets[i].Add(n)
}

func (s *stats) snapshot() (list []ProcStats) {
	for _, set := range []struct {
		program string
		names   []string
		procs   *[maxProcs]procStats
	}{{"nfs", nfsNames, &s.nfs}, {"mount", mountNames, &s.mount}, {"nlm", nlm.Names(), &s.nlm}, {"nsm", nsm.Names(), &s.nsm}} {
		for i, name := range set.names {
			p := &set.procs[i]
			if p.calls.Load() == 0 {
				continue
			}
			st := ProcStats{Program: set.program, Proc: name, Calls: p.calls.Load(), Errors: p.errors.Load(),
				Replayed: p.replayed.Load(), In: p.in.Load(), Out: p.out.Load(), Total: time.Duration(p.totalNS.Load())}
			for j := range p.buckets {
				st.Buckets = append(st.Buckets, p.buckets[j].Load())
			}
			list = append(list, st)
		}
	}
	return list
}
