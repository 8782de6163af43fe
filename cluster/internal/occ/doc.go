// Package occ is optimistic concurrency control: what a transaction read and
// wrote (Txn), and whether it may commit (History) where all of a store is in
// one process. An engine whose server decides has Reads of its own, and takes pairs
// from it in Pages.
//
//	begin:  version ← what is visible, then a Source of at least that
//	run:    Txn reads the Source under its own writes, and notes what it read
//	commit: under the engine's commit lock:
//	        History.Conflicts(reads, version)?  → run again
//	        apply, History.Push(version+1, written keys), publish version+1
//
// A key is compared by a 64-bit hash with a seed of its own in each process;
// a collision costs a needless retry, never a missed conflict. Ranges are
// compared by the keys themselves.
//
// History is bounded. A transaction that is older than all of it conflicts.
//
// Lock order: the engine's commit lock, then History's own lock.
package occ
