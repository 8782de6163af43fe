// Package quarantine stands between the namespace and the blobs of a store: who
// reads one goes through Read, which takes note of damage, and who deletes one
// that nothing names any more through Drop.
//
// A blob that fails verification is in quarantine (key 'z'). Drop sets it aside in
// place of deleting it, so that the engine keeps its bytes until Release. Who
// drops a blob decides by the outcome of the transaction that marks its record:
// without a record the blob is deleted. So the record of a blob that files use may
// go at any time (it reads well again), that of one set aside only after the blob,
// and a blob is never forgotten, in one process or in several that share the store.
//
// Where no other process changes the store, memory has all records, and what
// deletes asks it alone; elsewhere the store is asked. A note that the store
// does not take holds in memory until it does: neither readers, the scrub nor
// a check depend on writing.
//
// The Scrubber reads every blob again and again. Which files use a blob is for the
// namespace to say (Files).
//
// Locks: Blobs.confirming → Blobs.writing → Blobs.mu, Scrubber.pass → these;
// Scrubber.mu is a leaf. All but the two mu are held over transactions.
package quarantine
