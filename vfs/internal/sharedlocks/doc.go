// Package sharedlocks keeps advisory locks in the store, for the gateways that use it beside
// one another (Table, which implements lock.Locks). What is granted decides lock.File, as
// within one process.
//
//	'L' inode   all locks of a file: held ranges, flocks and share reservations, waiting requests
//	            in order of arrival, the gateway that vouches for each
//	'W' owner   the files in which an owner waits for a range
//	'X' client, inode   how much a remote client has in 'L'
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
//   - An entry counts while the fence of its gateway is there (package session), or if it has
//     none. A transaction
//     that meets entries of another gateway reads its fence, and so conflicts with its
//     eviction; it drops what the dead left. Of more than maxFences gateways it asks for some,
//     and takes the others for there: who reads of all (Sweep, the poller, who is refused) says
//     which seem to be gone, and those are asked for first. A gateway that was put out commits
//     nothing, and is answered nothing. Nothing is remembered of locks that an answer rests on.
//   - A request that left the queue, and is not in the list of ended ones, was granted. One may
//     be ended by the transaction that queued it, for what that granted others.
//   - What is late of a request that was given up does not take what another one of its owner
//     was granted, though nobody here knows of that yet (due).
//   - Share reservations are granted only by rules that no gateway is there without, or comes,
//     that cannot read them (Config.Rules).
//   - 'W' has the files in which an owner's range waits: both change in one transaction. A
//     request that would wait walks through both, and its commit compares what it read: of
//     two that begin to wait for one another at the same time, one sees the other. The walk
//     gives up after maxWalk owners or files: then it waits.
//   - A client that goes gives up file by file. While it does, the walks of this process leave
//     out what it has elsewhere: nobody is told of a deadlock that is over as soon as it is gone.
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
// believes to have would be worse. Of remote clients see below.
//
// # Remote clients
//
// Of a client that is another machine (lock.RemotePrefix) locks are its own: no gateway vouches
// for what it holds, whoever granted it, and any gateway unlocks it. This process remembers
// nothing of it, but the requests that wait here, which it is to call back for:
//
//   - What is asked for is in the store before it is answered, or an error is. No unlock is
//     late: the client may have asked another gateway since, and what came late would end
//     that. While a transaction without an answer may still come, an unlock of the same
//     owner is answered by an error, and each transaction of the file writes its record, so
//     that the other finds another value than it read.
//   - A request of it that another gateway, or a release, takes out of the queue is in the list
//     of ended ones.
//   - What left the queue, and is not among the ended ones, was granted, and may have been
//     given up since, at another gateway: the client is told only of what it holds
//     (Holds), and asks again otherwise.
//   - LockHolder.Untold are the grants of requests that may wait, at once or from the queue, if
//     the owner knew of nothing that it had of the range, until it is granted any of that by a
//     request that does not wait, or unlocks any: who could not tell the client, or learns that it
//     cancelled, gives up only that, but for what another of them is of, too. So does, late, whose
//     request ended without an answer. Gateways of a version before know the last one alone.
//   - 'X' says for each of its files how much it has there, and changes with 'L'. A release
//     finds the files by it; the part of a machine is counted by it (machines.go): when
//     this process meets it, and again after learnAfter more.
//   - Gateways of a version before know of locks without a gateway. What they grant from the
//     queue counts on the fence of who had it wait, until any gateway of this version looks.
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
