package server

import (
	"log/slog"
	"testing"
	"time"
)

// Memory is returned once after each load, when the process was quiet for a while.
func TestQuiet(t *testing.T) {
	var spent time.Duration
	unused, released := uint64(unusedMemory), 0
	q := &quiet{
		spent:   func() time.Duration { return spent },
		unused:  func() uint64 { return unused },
		release: func() { released++; spent += quietLook }, // it has a price
		log:     slog.New(slog.DiscardHandler),
	}
	after := func(looks int, load float64, want int) {
		t.Helper()
		for range looks {
			spent += time.Duration(load * float64(quietLook))
			q.look()
		}
		if released != want {
			t.Fatalf("released %d times, not %d", released, want)
		}
	}
	after(10, 1.5, 0)
	after(quietLooks-1, 0.001, 0)
	after(1, quietLoad, 0) // a load
	after(quietLooks-1, 0, 0)
	after(1, 0.001, 1)
	after(100, 0.001, 1)
	after(1, 1, 1)
	after(quietLooks, 0, 2)
	after(1, 1, 2)
	unused = unusedMemory - 1
	after(100, 0, 2)
}

// What is no longer used, and lies in the heap, is returned.
func TestReturnMemory(t *testing.T) {
	garbage := make([][]byte, 64)
	for i := range garbage {
		garbage[i] = make([]byte, 1<<20)
		for at := 0; at < len(garbage[i]); at += 4096 {
			garbage[i][at] = 1
		}
	}
	if before := processorTime(); before <= 0 {
		t.Errorf("the process has spent %v", before)
	}
	held := unusedHeap()
	clear(garbage)
	returnMemory()
	if now := unusedHeap(); now > held || now > 32<<20 {
		t.Errorf("%d bytes are unused, before %d", now, held)
	}
}
