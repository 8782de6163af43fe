package eager

import (
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"
)

// now returns the percent that is set.
func now() int {
	p := debug.SetGCPercent(percent)
	debug.SetGCPercent(p)
	return p
}

// sleepPast lets linger pass.
func sleepPast() { time.Sleep(2 * linger) }

func TestEager(t *testing.T) {
	for _, usual := range []int{400, 50, -1} {
		synctest.Test(t, func(t *testing.T) {
			defer debug.SetGCPercent(debug.SetGCPercent(usual))
			during := percent
			if usual < percent {
				during = usual
			}
			check := func(when string, want int) {
				t.Helper()
				if got := now(); got != want {
					t.Errorf("usually %d, %s: %d, want %d", usual, when, got, want)
				}
			}
			Begin()
			Begin()
			check("for two", during)
			End()
			check("for one", during)
			End()
			check("just after", during)
			Begin() // before it is over
			sleepPast()
			check("for one that came meanwhile", during)
			End()
			sleepPast()
			check("after all", usual)
		})
	}
}
