package fusemount

import "sync/atomic"

// privClock saves asking before each write whether a file has setuid or
// setgid. It moves when any file may have come to have them; a handle notes
// the time at which it had none.
type privClock struct{ now atomic.Uint64 }

func (c *privClock) moved() { c.now.Add(1) }
