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
// Where a server decides, a read costs a round trip, and a Memory spares it: a
// transaction is answered what was read or written last, and the server compares the
// versions, as it does with those of all reads. See Recall.
//
//	Update: commit compares      ─ changed ─► runs again without the memory
//	Peek:   Settle compares      ─ torn ────► runs again without the memory
//	error, nothing written: as a Peek
//
// So what a Memory holds may be old without harm, and nothing has to tell it of
// changes by others. It is filled by reads by key and by own commits, and a pair that
// was found to be old is dropped.
//
// Who was refused because others write the same pairs can wait for its Turn, among the
// transactions of one client.
//
// History is bounded. A transaction that is older than all of it conflicts.
//
// Lock order: the engine's commit lock, then History's own lock. The stripes of Turns are
// taken in the order of their numbers, and nothing waits for one for longer than turnWait.
package occ
