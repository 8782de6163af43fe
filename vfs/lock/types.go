package lock

import (
	"errors"
	"fmt"
	"math"
)

// Errors of this package.
var (
	// ErrWouldBlock: another owner holds a conflicting lock (EAGAIN).
	ErrWouldBlock = errors.New("lock is held by another")
	// ErrGrace is an ErrWouldBlock: those who held locks before a restart may
	// take them back first.
	ErrGrace = fmt.Errorf("%w: it is the grace period after a restart", ErrWouldBlock)
	// ErrDeadlock: waiting would close a cycle of owners (EDEADLK).
	ErrDeadlock = errors.New("lock would deadlock")
	// ErrNoLocks: MaxLocks is reached (ENOLCK).
	ErrNoLocks = errors.New("too many locks")
	// ErrInterrupted: the context of a waiting request ended, or its client
	// was released (EINTR).
	ErrInterrupted = errors.New("interrupted")
	// ErrInvalid: the range ends before it begins, or the space or type is
	// unknown (EINVAL).
	ErrInvalid = errors.New("invalid lock")
)

// EOF as the End of a range means up to the end of the file, wherever that
// comes to be (Linux OFFSET_MAX).
const EOF = math.MaxInt64

// Space is which kind of lock is meant. Locks of different spaces never
// conflict, as in Linux.
type Space uint8

const (
	// Range is a byte range. The door chooses the owner: a process for
	// POSIX locks, an open file for OFD locks.
	Range Space = iota
	// Flock is the whole file (flock(2)); the owner is an open file. A change
	// of type first drops the old lock, as Linux does, so that two who
	// upgrade at the same time do not block each other for good.
	Flock
	// Share is a share reservation on the whole file: how its owner has it open, and what
	// nobody else may have it open for (Reserve).
	Share

	Spaces // how many there are
)

// Type of a lock: what its holder does with the file and no other holder may.
type Type uint8

const (
	Shared    Type = iota // reads, and nobody writes
	Exclusive             // reads and writes, and nobody does either

	modes   Type = 1<<4 - 1
	reserve Type = modes + 1 // of space Share, with its mode
)

// Reserve returns the Type of a share reservation, of 1 (reading), 2 (writing), 3 (both) or 0.
func Reserve(access, deny uint8) Type { return reserve | Type(deny&3)<<2 | Type(access&3) }

// Access returns what the holder does.
func (t Type) Access() uint8 { return t.mode() & 3 }

// Deny returns what no other holder may.
func (t Type) Deny() uint8 { return t.mode() >> 2 }

// mode is Deny and Access in 4 bits.
func (t Type) mode() uint8 {
	switch t {
	case Shared:
		return 2<<2 | 1
	case Exclusive:
		return 3<<2 | 3
	}
	return uint8(t & modes)
}

// excludes reports whether two owners cannot have locks of these types.
func (t Type) excludes(o Type) bool { return t.Deny()&o.Access()|o.Deny()&t.Access() != 0 }

// covers reports whether t is o, or more than that.
func (t Type) covers(o Type) bool { return t.mode()&o.mode() == o.mode() }

// Owner of a lock. Requests of equal Owners never conflict.
type Owner struct {
	Client string // who is released as a whole: a mount, an NFS client
	ID     string // opaque, within the client
}

// Lock is one lock or request.
type Lock struct {
	Owner Owner
	Type  Type
	// Start and End bound the range, both inclusive, End at most EOF. Flock
	// and Share ignore them.
	Start, End uint64
	// PID is what F_GETLK shows of the holder; it has no other meaning.
	PID uint32
	// Era is, of a client that is another machine, which time between two of its boots asked;
	// 0: it does not say. Only Rebooted looks at it.
	Era uint32
}

func (l *Lock) overlaps(o *Lock) bool { return l.Start <= o.End && o.Start <= l.End }

// blocks reports whether the held lock l keeps o from being granted.
func (l *Lock) blocks(o *Lock) bool {
	return l.Owner != o.Owner && l.Type.excludes(o.Type) && l.overlaps(o)
}

// Normalize validates a request, and has a Flock or Share be of the whole file.
func (l *Lock) Normalize(s Space) error {
	if s != Range {
		l.Start, l.End = 0, EOF
	}
	typed := l.Type <= Exclusive
	if s == Share {
		if typed {
			l.Type = Reserve(l.Type.Access(), l.Type.Deny())
		}
		typed = l.Type&^modes == reserve
	}
	if s >= Spaces || !typed || l.Start > l.End || l.End > EOF {
		return ErrInvalid
	}
	return nil
}

// Journal is notified of the locks of one client: all that it holds in one space of
// a file, after each change and before anybody learns of it, in the order in
// which locks are granted. It is called under the Manager's lock: it must not
// wait, nor call the Manager. The slice is the caller's.
type Journal func(ino uint64, s Space, held []Lock)

// closer is an owner of locks of a file.
type closer struct {
	ino   uint64
	owner Owner
}

// closing is a closer of whom a descriptor was closed, or may have been.
type closing struct {
	ended chan struct{} // closed by Closed
	// over is closed when nobody waits for that any more: closingWait after the first
	// who did, nil before. From the close on it would be over too early: a process that
	// ends closes all its files, which may take long, before the kernel reports that any
	// was the last, and whoever saw its end tries then.
	over   chan struct{}
	untold bool // see Ends.Untold: over stays nil
}

// Entry is a lock that is held, or a request that waits for one.
type Entry struct {
	File    uint64
	Space   Space
	Lock    Lock
	Waiting bool
	Gateway uint64 // that vouches for it; 0: this process, or none
}
