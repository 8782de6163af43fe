// Package eager has the garbage of the process collected as eagerly as Go does by
// itself, while that is asked for.
//
// A server lets its heap grow to a multiple of what is in use, since it is little as
// a rule and is then collected too often. Who is about to make far more garbage than
// it keeps, bounded by a budget of its own, would make that multiple of the budget
// the size of the process.
package eager

import (
	"runtime/debug"
	"sync"
	"time"
)

const (
	// percent is Go's own.
	percent = 100
	// linger is how long it lasts after the last End: to change it stops the process
	// for a moment, and waits for a collection that is under way.
	linger = time.Second
)

var (
	mu    sync.Mutex
	users int
	on    bool
	usual int // what the percent was, while on
)

// Begin starts it, until End is called as often.
func Begin() {
	mu.Lock()
	defer mu.Unlock()
	if users++; on {
		return
	}
	on, usual = true, debug.SetGCPercent(percent)
	if usual < percent { // somebody said so
		debug.SetGCPercent(usual)
	}
}

// End takes back one Begin.
func End() {
	mu.Lock()
	defer mu.Unlock()
	if users--; users == 0 {
		time.AfterFunc(linger, restore)
	}
}

// restore comes linger after the last End.
func restore() {
	mu.Lock()
	defer mu.Unlock()
	if users == 0 && on {
		on = false
		debug.SetGCPercent(usual)
	}
}
