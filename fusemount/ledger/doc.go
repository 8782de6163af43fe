// Package ledger is the memory in which the server of a FUSE mount writes down
// what its successor must know: a file in memory (memfd) that a holder process
// keeps, so that it outlives the server however that ends.
//
//	header   magic, mount ID, INIT and its answer, whether the end was in order;
//	         listings that began, and the time of the directory then
//	files    open files by handle: inode, flags
//	dirs     open directories by handle: inode
//	locks    advisory locks: inode, space, owner, range
//	owners   which open file an owner of locks belongs to
//	writes   requests that changed bytes of a file, and how many
//	journal  bytes that were written and not stored yet
//
// It is for one machine and one kernel: numbers are in the machine's order, and
// nothing of it reaches a disk.
//
// # Invariants
//
//   - Everything is written before the kernel is answered, so that what a
//     program knows, the next server knows.
//   - A record counts from the moment in which its state word, or the head of the
//     journal, is stored, which comes after all of it. So a server that is killed
//     anywhere leaves whole records.
//   - A change of locks is reported by the lock manager in the order in which locks
//     are granted. What is new is stored before what it replaces is freed: a
//     kill in between leaves an owner with more than it has, never others with a
//     conflict. The request was not answered then, and comes again.
//   - A handle has a number of its own each time its slot is used, so that a
//     RELEASE that comes again does not close what was opened since.
//
// # The journal
//
// A ring of records, one for each write, in the order of the writes to a file.
// Stored frees those of a file whose bytes are in the store. The ring's space
// comes back in order: when it gets short, the file with the oldest record is
// stored first. A replay is exact: it writes the same bytes to the same places in
// the same order, unless the file's content was replaced meanwhile, which ends
// the writes before.
//
// # Lock order
//
// table.mu, Journal.mu, Writes.mu and Listings.mu are leaves, except that Locks.mu is held over
// table.mu.
package ledger
