package sharedlocks

import (
	"fmt"
	"testing"
)

// Machines that come and go are forgotten, but for those that have locks.
func TestMachinesForgotten(t *testing.T) {
	m := newMachines()
	m.learn("nfs holder ", 3)
	for i := range 2 * maxKnown {
		m.learn(fmt.Sprintf("nfs %d ", i), 0)
	}
	if n := len(m.known); n > maxKnown {
		t.Errorf("%d machines are known", n)
	}
	if m.known["nfs holder "] == nil || m.tally.Of("nfs holder ") != 3 {
		t.Error("one that has locks was forgotten")
	}
}
