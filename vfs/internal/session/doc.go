// Package session knows who uses the store: which processes are alive (Session),
// which readers still see what is gone by now (Readers), and who has which inode
// open or held (Table, Holder).
//
//	look inode up ─► Hold, Acquire ──── wait while a removal runs, then count
//	remove last link ─► Removals.Begin ─ in use: it stays, as an orphan
//	                                     else: marked until the transaction is over
//	last use ends ─► Inodes.Unused ───── removes the orphan
//
// It is the form for one process: others that use the same store are not seen,
// and time stands for them (Gone, Renew). A form for several would answer the
// same questions from what they send one another.
//
// # One process at a time
//
// Where others can reach the store, a Lease keeps them out, or out of date:
//
//	'F' id  fence  who it is; each Update expects it unchanged (Fenced)
//	'H' id  beat   a number, which grows every BeatEvery
//
//	Join   ─► no fence: write one ─ it stands for all that is done after
//	          a beat that moves: ErrInUse
//	          beats that stand for EvictAfter, seen without a gap: delete the
//	          fences and write one's own, in one transaction
//	Live   ─► the last acknowledged beat was sent less than LapseAfter ago
//	Gone   ◄─ the fence was not there
//
// The fence is what makes it safe: a commit of who was put out fails, whenever it
// arrives. The time only bounds what is answered from memory: LapseAfter, counted
// from before a beat was sent, ends before EvictAfter, counted from after it was
// seen, so that no clock is compared with another. A gap between two looks means
// that the store stood still, or the watcher did; then no beat proves anything,
// and the watch begins anew. bootClock goes on while a machine is suspended.
//
// Blobs need no fence: an ID is leased by a transaction, and one that was put out
// leases none; what it stores late, nothing names.
//
// Locks: a shard's mu, Table.holding and Readers.mu are leaves. A shard's mu also
// guards the counts of every Holder for the inodes of the shard.
package session
