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
// same questions from what they tell one another.
//
// Locks: a shard's mu, Table.holding and Readers.mu are leaves. A shard's mu also
// guards the counts of every Holder for the inodes of the shard.
package session
