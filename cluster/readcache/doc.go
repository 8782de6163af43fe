// Package readcache keeps what was read of blobs that lie in servers of others: in memory
// and, if wanted, on a local disk.
//
//	ReadAt ─► memory ─► disk ─► the engine below, one request for all who wait
//	             │        ▲
//	             │        └── what memory has no room for any more
//	             └─► the next chunks, where a blob is read in order
//
// Blobs are cut into chunks of chunkBytes. They never change, and while a process runs an ID
// returns only after its blob was deleted through this engine, so that a chunk in memory is
// right for as long as it is kept: no gateway has to be told anything. What is deleted through this engine is dropped; what another gateway deleted
// nobody names any more, and it makes room like all else.
//
// # Verified
//
// The engine below returns verified bytes. On the disk, each chunk has a checksum that
// covers its place in its blob, too; one that does not fit is read from the engine again.
// Verify and Probe go past both.
//
// What is on the disk outlives the process, and IDs can return until the next one: the
// metadata were restored, or moved back, or the folder is another store's now. So the disk
// is used only once the store is known (Claim), a chunk there has the store's ID and the
// checksum that the metadata had of the whole blob when it was read, and it is an answer only
// to who names both (ReadSummed). Neither has to be told that anything was restored.
//
// # Read-ahead
//
// Who has read a chunk behind one that is in memory reads in order: what follows is asked for,
// twice as much as was read in order so far, up to maxAhead chunks, by
// requests of as many as were read, aheadChunks at least and maxRun at most: a request costs an S3
// server as much as a MiB or two. Nobody waits for them but who reads what they are about.
//
// # Disk
//
// Chunks lie in slots of one file, "chunks", which another file, "index", says what they
// are:
//
//	record: content (8) ‖ blob (8) ‖ chunk (4) ‖ bytes (4) ‖ 1 if it is the last (1) ‖ zeros (7)
//	        ‖ store (8) ‖ CRC64NVME of the blob (8)
//	        ‖ CRC64NVME of the chunk's bytes and of these 48 (8) ‖ CRC64NVME of these 56 (8)
//
// big-endian, 64 bytes each. Nothing is synced: what a crash leaves half has no fitting
// checksum. Slots are taken over in turn, but for those that were read since the last turn.
//
// # Invariants
//
//   - A chunk is loaded once at a time, by one goroutine, which nobody who waits can
//     cancel.
//   - Errors are not kept, and who did not begin a request that failed asks again: what it
//     was told may be older than its own call.
//   - What is dropped is in neither place afterwards, also if it was on its way from one to
//     the other.
//   - A chunk's bytes are not used again while somebody copies them.
//
// Locks: Blobs.life, read-locked while a load begins → memory.mu. That and disk.mu are leaves. No
// request is made under any.
package readcache
