// Package sharedlocks keeps advisory locks in the store, for the gateways that use it beside
// one another (Table, which implements lock.Locks). What is granted decides lock.File, as
// within one process.
//
//	'L' inode   all locks of a file: held ranges and flocks, waiting requests in order of
//	            arrival, the gateway that vouches for each
//	'W' owner   the files in which an owner waits for a range
//
//	TryLock, Lock, Unlock ─► one transaction: read 'L', drop the dead, decide, grant, write 'L'
//	what waits ────────────► its entry stands in 'L'; whoever releases grants it there
//	poll ──────────────────► one reader for all that waits in the process: entries that are
//	                         gone from the queue were granted
//
// # Invariants
//
//   - Those of package lock, of what the store has: every decision is one transaction that
//     reads and writes the one record of the file. A file without locks has no record.
//   - An entry counts while the fence of its gateway is there (package session). A transaction
//     that meets entries of another gateway reads its fence, and so conflicts with its
//     eviction; it drops what the dead left. A gateway that was put out commits nothing, and
//     is answered nothing. Nothing is remembered of locks that an answer rests on.
//   - A request that left the queue, and is not in the list of ended ones, was granted.
//   - 'W' has the files in which an owner's range waits: both change in one transaction. A
//     request that would wait walks through both, and its commit compares what it read: of
//     two that begin to wait for one another at the same time, one sees the other. The walk
//     gives up after maxWalk owners or files: then it waits.
//   - One transaction of the process runs at a time for each file (file.turn).
//   - What is given up, and cannot be told to the store, is late: each later transaction of
//     the file does it first, and the poller tries again until one commits.
//
// # Transactions without an answer
//
// They may have been committed, or be later. An owner whose request ended so is asked about
// until it is known (file.unsure), and its release is done again when no transaction of
// before can commit any more, which the fence, written anew, sees to (Config.Doubt). A
// request that comes again finds its own: locks of one owner never conflict. What may be
// held and is not known to the program, stays held until it unlocks or closes: less than it
// believes to have would be worse.
//
// # Closing
//
// Who sees the end of a close, expects the end of the locks; the kernel says that later. A
// close marks them in the store (Closing), and those who do not wait look again, for
// closingWait, while a lock in the way is marked.
//
// # Lock order
//
// file.turn → Table.mu → lock.Journal, Config.Doubt. Transactions run with the turn and
// without Table.mu; callbacks of requests with neither.
package sharedlocks
