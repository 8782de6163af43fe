// Package postgres keeps the metadata of a store in a PostgreSQL database,
// where several processes share it. It is the KV half of an engine only.
//
//	read:   one snapshot of the server (REPEATABLE READ, READ ONLY); what is
//	        remembered (occ.Memory) is compared there by its version
//	Peek:   each round trip has a snapshot of its own, in which the versions of all
//	        that was read before are compared, so that none has to be ended; those who
//	        wait at the same time share one (gather); likewise the first attempt of an
//	        Update, which so has no connection while others wait for one
//	commit: one call of a function in READ COMMITTED: ogw_commits_v2 for those who wait at
//	        the same time and need no snapshot, else ogw_commit_v4
//	        lock     what was read and what is written, in the order of locks
//	        compare  each key that was read: its version (0: absent);
//	                 each range that was scanned: how many pairs it has;
//	                 each pair that is expected: its value
//	        write    pairs, with the next version
//
// The snapshot decides what a transaction sees, the commit whether that still
// holds, so the reads of an Update hold at its commit. PostgreSQL's own
// SERIALIZABLE promises less: reads that some order of the transactions
// explains. A transaction that wrote nothing is committed by its snapshot.
//
// # Tables
//
//	ogw_pairs  store, key, value, version   one row for each pair
//	ogw_slots  store, id, number, kind, used   one row for each connection that committed
//
// Versions come from the sequence ogw_versions: no two writes of a key have
// the same.
//
// # Locks
//
// They are advisory locks of the database, held until the commit ends. Their
// numbers are hashes, so that two keys may share one: that costs time only.
//
//	store              X  a transaction with many locks, or with a range that
//	                      is no prefix of a directory
//	                   S  any other
//	prefix of 9 bytes  X  a range within it was scanned
//	                   S  a key of it is written
//	key                X  is written
//	                   S  was read, or is expected
//
// Each commit takes its locks in the order of their numbers, so that no two
// wait for each other. Creates in one directory share its prefix.
//
// Commits that go together take all their locks, and wait for none: one that would have to,
// goes by itself then. None reads what another one of them writes. What several set that none
// has read, as the time of a directory in which many make names, the last one sets; the locks of
// that they wait for, before they take the others.
//
// A transaction that met a conflict three times queues for the locks of its last
// attempt before it reads again, and keeps them over the commit: a pair that
// many change is locked in turns. If it reads or writes something else this time,
// it does not wait for the locks of that: their order is broken, and who has them may
// wait for its own. It begins again, and queues for those too. The server ends the
// connection of who holds locks and says nothing for a second, in the transaction and around
// it: a process that stands still, if while it queues, stops nobody.
//
// # Unknown outcomes
//
// Each commit also moves its slot, a row of this client, from one number to the
// next. When the answer is lost, the client moves the slot itself, to a fence.
// That waits for a commit that still runs on the server, and then either
// succeeds, and a commit that arrives later finds the wrong number and does
// nothing, or finds the number of the commit, which then happened. It writes also then, so
// that behind a commit that a synchronous standby does not have it waits for that too: such a
// commit is not acknowledged. One of several in a call that did nothing leaves its slot as a
// fence does.
//
// # Limits
//
// Keys are at most cluster.MaxKeyBytes long, since an index entry of the server
// must fit a third of a page. A transaction may hold MaxOps operations and 16
// MiB. A View holds a connection and a snapshot until it ends.
//
// Urgent calls (cluster.Urgent) have two connections of their own, beside the
// MaxConnections that all others share. A connection that was idle is asked whether it still
// works, for pingTimeout, and an urgent request that has no answer after urgentTimeout goes on by
// another one, so that connections that were lost without a word cost no gateway a beat.
//
// # Lost connections
//
// What a transaction reads first is asked again by another connection, if its own ends or, but for
// scans, has no answer after silentTimeout. Later reads need their snapshot, and fail. After
// a loss all other connections are asked whether they work, and when one of them does not
// either, those that were used before are given up. A commit that was sent is never sent again: its
// outcome is looked for when the connection ends, which the kernel sees to where the other machine
// is gone (dialer), or after commitTimeout.
//
// Erase vacuums the table. What the server wrote into its log stays there until
// the log was recycled.
package postgres
