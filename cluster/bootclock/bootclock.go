// Package bootclock is the clock that leases are measured with.
package bootclock

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now returns the time since the machine was started, also that for which it was suspended. Go's own
// monotonic clock leaves that out, and a lease would go on although others saw it end.
func Now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(err) // Linux has it since 2.6.39
	}
	return time.Duration(ts.Nano())
}
