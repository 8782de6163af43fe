package ring

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Before a request waits whose kind does not tell that it may, the kernel is made to look at
// what it has queued behind it.
func TestWaits(t *testing.T) {
	probed := make(chan struct{}, 10)
	r, err := New(Config{Probe: func(_ *unix.CPUSet, begin func()) error {
		begin()
		probed <- struct{}{}
		return nil
	}})
	if err != nil {
		t.Skip(err)
	}
	q, e := newQueue(0), &entry{}
	q.idle.Add(1) // another thread waits for requests
	e.unique.Store(8)
	r.entries[e] = q
	r.Waits(8)
	if len(probed) > 0 || q.waits.Load() != 1 || !e.waits.Load() {
		t.Errorf("nothing is queued: %d probes, %d requests wait", len(probed), q.waits.Load())
	}
	q.full.Add(1)
	r.Waits(6) // through /dev/fuse
	r.Waits(8)
	<-probed
	if len(probed) > 0 || q.waits.Load() != 1 {
		t.Errorf("%d more probes, %d requests wait", len(probed), q.waits.Load())
	}
}
