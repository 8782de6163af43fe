package adversary

import (
	"fmt"
	"testing"
	"time"
)

const (
	// paceWindow is how long a rate is measured, before a flood and in it.
	paceWindow = 2 * time.Second
	// paceTries is how often a flood is tried until its victim is seen to go
	// on: another program may have the machine meanwhile.
	paceTries = 3
	// longestWait is what no request of a victim may take.
	longestWait = 2 * time.Second
	// giveUp is when a victim's request is taken for lost.
	giveUp = 5 * time.Second
)

// pace is how fast somebody's requests go.
type pace struct {
	done  int
	worst time.Duration
	err   error // of a request that failed, which ends the measurement
}

// String is what a failed test says.
func (p pace) String() string {
	return fmt.Sprintf("%d requests, the longest %v, error %v", p.done, p.worst, p.err)
}

// paceOf repeats a request for paceWindow.
func paceOf(do func() error) (p pace) {
	for begin := time.Now(); p.err == nil && time.Since(begin) < paceWindow; {
		at := time.Now()
		p.err = do()
		p.worst = max(p.worst, time.Since(at))
		p.done++
	}
	return p
}

// withstands has a flood on, and fails the test unless a victim's requests
// keep at least half of the rate that they had just before, and none waits
// over two seconds.
func withstands(t *testing.T, victim func(*testing.T) (do func() error), attackers scene) {
	t.Helper()
	var said []pace
	for range paceTries {
		do := victim(t)
		before := paceOf(do)
		if before.err != nil {
			t.Fatalf("without a flood: %v", before.err)
		}
		end := attackers.begin(t)
		during := paceOf(do)
		end()
		if during.err == nil && during.worst <= longestWait && during.done >= before.done/2 {
			t.Logf("%d requests before, %d in the flood, the longest %v", before.done, during.done, during.worst)
			return
		}
		said = append(said, before, during)
	}
	t.Errorf("before and in the flood, %d times: %v", paceTries, said)
}
