package nlm

import (
	"errors"

	"ogw/nfsserver/nsm"
	"ogw/vfs"
	"ogw/vfs/lock"
)

// Stat is an nlm4_stats (RFC 1813 section 6.1.1). Those that mean failure are
// errors.
type Stat uint32

const (
	statGranted  Stat = 0
	statDenied   Stat = 1 // held by another; of CANCEL: nothing to cancel
	statNoLocks  Stat = 2
	statBlocked  Stat = 3 // the client will be called back
	statGrace    Stat = 4
	statDeadlock Stat = 5
	statROFS     Stat = 6
	statStale    Stat = 7
	statFBig     Stat = 8
	statFailed   Stat = 9
)

var statNames = []string{"GRANTED", "DENIED", "DENIED_NOLOCKS", "BLOCKED", "DENIED_GRACE_PERIOD",
	"DEADLCK", "ROFS", "STALE_FH", "FBIG", "FAILED"}

// String returns the name without its prefix.
func (s Stat) String() string {
	if int(s) < len(statNames) {
		return statNames[s]
	}
	return "unknown"
}

// Error makes a Stat an error.
func (s Stat) Error() string { return "nlm: " + s.String() }

// failure reports whether the status is one that an operator should see: not
// the everyday answers.
func (s Stat) failure() bool {
	switch s {
	case statGranted, statDenied, statBlocked, statGrace, statDeadlock:
		return false
	}
	return true
}

// errorTable maps the errors of vfs and of the lock manager; the first that
// matches counts. GRACE makes the client ask again after a while, which is
// right for what passes.
var errorTable = []struct {
	err  error
	stat Stat
}{
	{lock.ErrGrace, statGrace},
	{vfs.ErrWouldBlock, statDenied},
	{vfs.ErrDeadlock, statDeadlock},
	{vfs.ErrNoLocks, statNoLocks},
	{vfs.ErrInterrupted, statDenied},
	{nsm.ErrTooManyPeers, statNoLocks},
	{vfs.ErrReadOnly, statROFS},
	{vfs.ErrStale, statStale},
	{vfs.ErrNotExist, statStale},
	{vfs.ErrFileTooLarge, statFBig},
	{vfs.ErrUnavailable, statGrace},
	{vfs.ErrConflict, statGrace},
	{vfs.ErrTimeout, statGrace},
	{vfs.ErrBusy, statGrace},
	{vfs.ErrClosed, statGrace},
}

// statOf returns the status that an error is answered with.
func statOf(err error) Stat {
	if err == nil {
		return statGranted
	}
	var s Stat
	if errors.As(err, &s) {
		return s
	}
	for _, e := range errorTable {
		if errors.Is(err, e.err) {
			return e.stat
		}
	}
	return statFailed
}
