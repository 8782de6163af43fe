package lock

import "context"

// Locks are what doors lock files by: a Manager where one process knows all locks, and
// what vfs makes of the store where several gateways do. Files are named by number.
type Locks interface {
	Requests
	Ends
	Clients
	Graces
}

// Requests are what programs ask for. Beside ErrInterrupted and the errors of each, an
// error is one of the store: it is not known then what became of the request, which may
// be made again by the same Owner.
type Requests interface {
	// TryLock takes or converts a lock, or returns ErrWouldBlock, ErrNoLocks or
	// ErrInvalid (F_SETLK, LOCK_NB).
	TryLock(ctx context.Context, ino uint64, s Space, l Lock) error
	// TryLockSoon is TryLock that gives the owner of a lock in the way a moment to be
	// closed, if it may be about to.
	TryLockSoon(ctx context.Context, ino uint64, s Space, l Lock) error
	// Lock is TryLock that waits. It returns ErrDeadlock if waiting would never end
	// (Range only), and ErrInterrupted when ctx ends first.
	Lock(ctx context.Context, ino uint64, s Space, l Lock) error
	// LockFunc is Lock for callers that cannot wait, or have more to do where it waits. If
	// the lock is granted at once, waiting is false and done is never called. Else done is
	// called exactly once, with nil when the lock is held, unless cancel returns true
	// before. cancel also gives up what a remote client was granted, at once or later: it
	// does not know of it. What it held of the range before stays its own. Remotes give
	// up nothing then, nor if it was granted or unlocked any of it otherwise. ctx is that of the call.
	LockFunc(ctx context.Context, ino uint64, s Space, l Lock, done func(error)) (cancel func() bool, waiting bool, err error)
	// Reclaim is TryLock for a lock that the owner held before a restart.
	Reclaim(ctx context.Context, ino uint64, s Space, l Lock) error
	// Test returns the lock that would keep l from being granted, the one with the
	// lowest start if there are several (F_GETLK).
	Test(ctx context.Context, ino uint64, s Space, l Lock) (holder Lock, held bool, err error)
	// TestSoon is Test that waits as TryLockSoon does.
	TestSoon(ctx context.Context, ino uint64, s Space, l Lock) (holder Lock, held bool, err error)
	// Unlock gives up what the owner of l has of its range (F_UNLCK, LOCK_UN). It fails with
	// ErrNoLocks if a range would split and there are too many.
	Unlock(ctx context.Context, ino uint64, s Space, l Lock) error
}

// Ends are those of owners and clients. They are not lost, whatever the store does: what
// cannot be told to it now is told later, and before what the owner asks for then.
type Ends interface {
	// ReleaseOwner gives up all that owner holds in one file and space, at the close of a
	// file. It costs nothing while the owner holds nothing.
	ReleaseOwner(ino uint64, s Space, owner Owner)
	// ReleaseClient gives up all that a client holds, and ends its waiting requests with
	// ErrInterrupted: a mount went away, an NFS client rebooted.
	ReleaseClient(client string)
	// Rebooted is ReleaseClient of a client that is another machine, but for what is of the
	// era keep (Lock.Era; 0: nothing is). An error is one of the store: some may be left.
	Rebooted(ctx context.Context, client string, keep uint32) error
	// Closing notes that one descriptor of owner, an open file, was closed, maybe its
	// last: its locks may be gone for programs, though nobody said so yet. Closed must
	// follow when it is known. ReleaseOwner does not end it.
	Closing(ino uint64, owner Owner)
	// Untold notes that of the descriptors of owner no close is told but the last one, and
	// that a moment later: who meets one of its locks waits as after Closing, each time.
	// Closed ends it.
	Untold(ino uint64, owner Owner)
	// Closed ends Closing and Untold, which need not have been called: the locks of owner are
	// released, or it is about to ask for one.
	Closed(ino uint64, owner Owner)
}

// Clients are what is known of the clients of this process.
type Clients interface {
	// Count returns the number of held locks and waiting requests.
	Count() int
	// ClientCount returns how many of them are a client's.
	ClientCount(client string) int
	// SetAccount makes a client share one part of the locks with all others of an account
	// ("": no account). It is set before the client's first lock and until after its last.
	SetAccount(client, account string)
	// SetJournal sets the Journal of a client that holds no locks yet; nil ends it.
	SetJournal(client string, j Journal)
	// List returns the locks and waiting requests, of other gateways, too, for which keep
	// returns true, at most max of them, by file and start; more reports whether there are
	// others. keep must not call back, nor block.
	List(ctx context.Context, max int, keep func(*Entry) bool) (list []Entry, more bool, err error)
}

// Graces are times in which only Reclaim grants ranges and shares, for those who held them
// before a restart. Where locks outlive a restart there are none.
type Graces interface {
	// BeginGrace begins one. Other requests get ErrGrace, or wait. Flocks go on: no client
	// can reclaim one. Several may overlap.
	BeginGrace()
	// EndGrace ends what BeginGrace began, and grants what waits and can be.
	EndGrace()
	// InGrace reports whether a grace period is on.
	InGrace() bool
}
