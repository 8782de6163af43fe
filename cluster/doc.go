// Package cluster defines what stores: KV, an ordered transactional key-value
// store for metadata, and Blobs, a store of immutable byte strings for data.
// Engines implement both, one sub-package each; the package itself knows
// nothing of files, objects or protocols.
//
//	vfs ──┬── KV     (metadata)  ── local (Pebble), mem (tests), ...
//	      └── Blobs  (data)      ── local (files),  mem (tests), ...
//
// # Contract of KV
//
// Order: keys are compared as unsigned bytes. Keys are 1 to MaxKeyBytes long
// and do not begin with 0xFF, which engines keep for themselves.
//
// Atomicity: an Update applies all of its writes or none, a crash included.
//
// Isolation: Updates are serializable, and range reads count: a key that
// appears in a range which a transaction scanned is a conflict. An Update
// whose reads no longer hold at commit runs its function again, on fresh
// data; after MaxTxnAttempts it returns ErrConflict. A View sees one
// consistent snapshot and never conflicts.
//
// Runs that come to nothing: the function of an Update or a Peek may be shown
// pairs as they once were, which need not fit together, if that run is
// thrown away: it runs again then, and what it did and returned before means
// nothing, an error neither. What the last run read held at one moment, that of
// the commit if it wrote, and else one between the call and its return. In a View
// each run is of one snapshot. What a run learned may go into memory that others
// use only after the call returned, or after Reader.Settle.
//
// Expectations: an Update can commit under the condition that pairs which it
// did not read have certain values (Txn.Expect): the fence of a session, which
// a read of its own would cost a round trip. What is expected holds at the
// commit, as reads do, whichever client of the store changed it. It is the
// value that counts: a pair that was replaced, and has it again, is as good.
//
// Real time: a transaction sees all that was acknowledged before it began.
//
// Durability: when Update returns nil, its writes survive the loss of power.
// A View returns only what is durable already: an engine that lets readers
// see commits before they are synced holds the View back until they are.
// A caller that can live with less says so in its context (Relaxed): an
// Update is then atomic, serializable and visible to all when it returns, and
// durable, in commit order, after the next Sync, the next Update that is not
// relaxed, or RelaxedBound, whichever comes first; and a relaxed View may
// return what is not durable yet. The end of the process takes nothing back.
//
// Urgent calls: an engine that lets only so many transactions run at once has means of
// their own for those whose context says so (Urgent): others that are slow, stuck or many
// do not keep them waiting. What is locked or written by others does, as ever.
//
// Limits: a transaction over the engine's limit fails whole with
// ErrTxTooLarge. Nothing is ever split silently; Limits returns the numbers.
//
// Unknown outcomes: when an engine cannot tell whether a commit happened,
// Update returns ErrUnavailable, never nil and never a definite failure. Where no other
// process can use the store (Cluster.Exclusive), it has happened by then, or it does not
// before the store is opened again.
//
// # Contract of Blobs
//
// A blob is created once, by streaming, and never changes. It does not exist
// before Commit returns, and is durable after; a crash before leaves nothing
// that List shows or ReadAt finds, or at the worst a whole blob that List
// shows. Every block is checksummed (CRC64NVME) and verified when read: a
// mismatch is ErrCorrupt, never wrong bytes. Delete is idempotent, and nothing that
// is left to do of it touches a blob that is created under the same ID afterwards.
//
// Blobs that could come together with the metadata of another store, or of
// another time, tell so: Claimer.
//
// An engine may keep the place of a blob in its own metadata as long as it
// is durable no later than the first Update that starts after Commit.
package cluster
