package mem

import (
	"slices"
	"sync"
)

// Op is a point where a call can be made to fail.
type Op string

// The points of failure.
const (
	OpView       Op = "view"        // View fails before it begins
	OpUpdate     Op = "update"      // Update fails before its function runs
	OpCommit     Op = "commit"      // Update fails after its function ran; nothing is written
	OpCommitted  Op = "committed"   // Update fails although all is written
	OpSync       Op = "sync"        // Sync fails
	OpBlobCreate Op = "blob-create" // Create fails
	OpBlobWrite  Op = "blob-write"  // Write fails
	OpBlobCommit Op = "blob-commit" // Commit fails; there is no blob
	OpBlobRead   Op = "blob-read"   // ReadAt fails
	OpBlobDelete Op = "blob-delete" // Delete fails; nothing is deleted
	OpBlobList   Op = "blob-list"   // List and Locate fail
)

// Faults makes chosen calls fail. The zero value fails none; it may be set
// while the engine runs.
type Faults struct {
	mu     sync.Mutex
	calls  int
	at     int // fail when calls reaches it; 0: never
	sticky bool
	err    error
	ops    []Op
}

// FailAt makes the nth call from now fail with err (the next is 1), counting
// only ops, or all when there are none. It replaces what was set before.
func (f *Faults) FailAt(n int, err error, ops ...Op) { f.set(n, err, false, ops) }

// FailFrom is FailAt for the nth call and all after it, until Clear.
func (f *Faults) FailFrom(n int, err error, ops ...Op) { f.set(n, err, true, ops) }

// Clear ends all failing and restarts the count of calls.
func (f *Faults) Clear() { f.set(0, nil, false, nil) }

func (f *Faults) set(n int, err error, sticky bool, ops []Op) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls, f.at, f.err, f.sticky, f.ops = 0, n, err, sticky, ops
}

// Calls returns how many calls were counted since the last setting.
func (f *Faults) Calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

func (f *Faults) next(op Op) error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.ops) > 0 && !slices.Contains(f.ops, op) {
		return nil
	}
	f.calls++
	if f.at > 0 && (f.calls == f.at || f.sticky && f.calls > f.at) {
		return f.err
	}
	return nil
}
