// Package session knows who uses the store: which processes are alive (Session),
// which readers still see what is gone by now (Readers), and who has which inode
// open or held (Table, Holder).
//
//	look inode up ─► Hold, Acquire ──── wait while a removal runs, then count
//	remove last link ─► Removals.Begin ─ in use: it stays, as an orphan
//	                                     else: marked until the transaction is over
//	last use ends ─► Inodes.Unused ───── removes the orphan
//
// Table and Holder know this process alone. Beside others, what this one does not use
// another one may, so that the last link leaves an orphan, always, and nobody removes one
// when his own use ends: the collector does, when none uses it (below).
//
// # Leases
//
// Where others can reach the store, a Lease is the right to use it, alone or beside
// others:
//
//	'F' id  fence  who it is; each Update expects it unchanged (Fenced)
//	'H' id  beat   a number, which grows every BeatEvery, and whether the blobs answer
//	'V' id  reads  beside others: what it reads and uses (publisher)
//
//	Join   ─► nobody whom it cannot be beside: write a fence ─ it stands for all
//	          that is done after
//	          a beat of such a one that moves: ErrInUse
//	          beats that stand for EvictAfter, seen without a gap: delete the
//	          fences and write one's own, in one transaction
//	Live   ─► the last acknowledged beat was sent less than LapseAfter ago
//	Gone   ◄─ the fence was not there
//	beside ─► after each beat that was committed, look at the others, and delete the
//	          fence of who stood still for EvictAfter
//
// The fence is what makes it safe: a commit of who was put out fails, whenever it
// arrives. The time only bounds what is answered from memory: LapseAfter, counted
// from before a beat was sent, ends before EvictAfter, counted from after it was
// seen, so that no clock is compared with another. A gap between two looks means
// that the store stood still, or the watcher did; then no beat proves anything,
// and the watch begins anew. bootclock goes on while a machine is suspended.
//
// All that a lease asks of the store is urgent (cluster.Urgent): a gateway is not put out
// since its clients fill what its engine lets run at once.
//
// Who vouches for what the next process on the machine takes over (locks of mounts that
// survive) leaves its fence when it ends, as after a crash (Stay).
//
// That process may know that those before it have ended (record.Gateway.Ended): nobody answers for
// them any more, so that it waits for none. Their fences stand for commits that may still
// come, and for what they vouched for: it deletes them when it takes the store for itself, or, beside others,
// once it has taken that over (succeed). One that takes nothing over, for one command, leaves
// them to the next server.
//
// While a store takes no writes, nobody beats, nobody's look counts, and nobody is put
// out for it afterwards.
//
// Blobs need no fence: an ID is leased by a transaction, and one that was put out
// leases none; what it stores late, nothing names. When it ends, and stores nothing any
// more, it has the others look for that (Leave, record.SweepAgain): they may have looked
// before it was stored.
//
// # What others need
//
// Who removes something asks what others may need of it. Nothing is kept for a time:
//
//	deleted contents, blobs  Settle: all others said that what they read from before is
//	                         over, or in which contents it is not (publisher)
//	staged contents, blobs   Left: those whose numbers are smaller than the first that
//	that nothing names       one who is there may still name
//	orphans                  Settle, too: all others said in which inodes they are, in use
//	                         since before; whose use begins later finds no links, and
//	                         refuses (Inodes)
//
// A gateway that holds more inodes than it can name, for a kernel, names those without links
// (findOrphans), and tells the door of those that nobody has open (Holder.OnUnlinked). One
// that goes on with what a process before it had in use says nothing before it knows what
// that is (Restored), so that others wait. Who looks an inode up and then holds it learns
// whether this process was asked in between (HoldMark).
//
// First is the number that was free when a gateway came, and rises when something waits for
// it: who puts a gateway out notes the number that is free then (CounterLeft), and the
// others say a later First with their beats as soon as nothing that they began before is
// still to be named (ids.Use): bodies that are being received, contents that are staged.
// An upload that takes days keeps it for days. A transaction without an answer may still
// come: who has had one (a doubt) writes its fence anew with the next beat, after which
// none of before can commit, and notes CounterLeft for what it was about to name. The
// model of this is in integration/peers (LEFT).
//
// The oldest that the blobs answer does what one has to do for all (Leads, Lead). That is a
// hint: two that do it at once do no harm.
//
// # Purges
//
// A purge has to reach all. The request stands under 'Y'; a beat reads the number of the
// last one (CounterPurge), so that each gateway learns of it within BeatEvery, does it, and
// answers there. Who asked waits for all whose fences are there, for a bounded time, and
// removes the records.
//
// Locks: publisher.mu → Readers.mu, extents.Pins.mu, a shard's mu. A shard's mu, Table.holding and Readers.mu are leaves. A shard's mu also
// guards the counts of every Holder for the inodes of the shard.
package session
