// Package local is the embedded engine: metadata in Pebble, data in segments
// and files of the same folder, for one process.
//
//	DIR/FORMAT            version and store ID
//	DIR/LOCK              held by the process that has the store open
//	DIR/MARK              what the metadata were a short while ago
//	DIR/reserve           the reserve file: holds space, and nothing else
//	DIR/tail              commits of the last moment
//	DIR/meta/             Pebble: the metadata, and the index of blobs below 0xFF
//	DIR/segments/N.seg    blobs of up to 1 MiB, one after the other
//	DIR/blobs/XX/ID       larger blobs, a file each
//
// Nobody else may use what lies there: files are made with mode 0600, folders
// with 0700, by descriptor and through no symbolic link, and a start closes what
// it finds open (private.go, fileio.PrivateFS). DIR itself is the operator's, and
// refused where others may write to it.
//
//	local                  KV: transactions, durability │ Blobs: index, writers, readers
//	internal/tail          commits of the last moment   │
//	internal/metafs        below Pebble                 │
//	internal/segment                                    │ small blobs
//	internal/diskspace     what is refused while the disk is full
//	internal/record        how all of it is laid out
//	internal/fileio ioerr  files, pages; errors
//	internal/crc64         the checksum of blocks
//	internal/watchdog      a disk that does not answer
//
// # Metadata
//
// Transactions are optimistic (package occ): one version of the store, a set of
// what was read, and at commit, under KV.commit, a comparison with what was
// written since. A commit is visible before it is durable, which is what lets
// many share a sync; so every commit has a version, durability.synced is the
// newest durable one, and who read something newer waits for it before
// answering (KV.awaitReads).
//
// Pairs that were read or written a moment ago are kept in memory (pairCache),
// as of which version; of large values that nobody read, the head. A commit
// counts in their slots, and replaces them, before Pebble has it. So a
// transaction, and a Peek, begins with nothing but a version: what it finds in memory, or as the newest value in Pebble, is the
// value of that version as long as the slot has none newer. It takes a snapshot
// for ranges and many pairs, and begins again where things do not fit (source).
// Most creates, lookups and removals of files take none.
//
// A relaxed commit is not durable when it is answered, but has left the process:
// Pebble keeps up to a block of its log in memory, so what is answered is written
// to the tail first, under KV.commit. The commits there set one
// key to their version; a start finds there which Pebble has, and replays the rest
// from the tail, in order and up to the first gap. So the end of the process takes
// nothing, and a power cut a suffix, of which the tail may give back a part.
//
// A durable commit that is alone is made durable there: its goroutine writes it, on
// pages of its own, and syncs (durability.use, syncTail). Pebble has another goroutine
// write and sync the log, and to wake that and to be woken by it took a fifth of the time
// of a lone fsync through a mount; and it syncs a page twice that two commits share. Many
// commits at a time share Pebble's syncs, and long ones are not worth writing twice.
//
// So a version is durable that Pebble's log has (durability.logged), or the tail, on top of
// one that the log has (base). The log has everything half a second later, or when a half
// is full, and before what it lacks of durable commits fills a quarter of a memtable: only
// its syncs show its errors, and have to before a flush that needs a new log stops all
// commits. Three wait for it: the mark, which a start looks at before it replays the tail;
// Erase, which overwrites the tail; and Close, which removes it. A sync of the tail that
// fails is the last one: the log has what comes then. Where nobody is answered because of
// it the tail rests, and costs nothing.
//
// A start accepts the store, and removes what Pebble does not need any more, only
// when the replay is durable: one that fails or is killed before that may be
// repeated.
//
// Erase is for secrets that were replaced: it rewrites the tables of a range, and those that
// share value files with them,
// overwrites the logs, which Pebble keeps to use them again, and the tail, and
// waits until the files that are not needed any more are gone (erase.go). It waits for
// views that see what was replaced, and the count of live bytes, which would keep
// files for minutes, begins again after it.
//
// Pebble's fatal errors end the taking of writes, not the process: see
// metafs.Health.
//
// A disk may neither write nor fail. Whoever waits for it, for metadata or data, is told so after
// watchdog.Limit, with an unknown outcome; what waits goes on, and as long as it does, new
// changes are refused (package watchdog). The first ones, until they have lasted a tick, wait in
// their callers' goroutines, and these for the disk. So does the commit that is being applied, one
// at a time; those that wait for their turn are none once their callers were told (caller.leave):
// caches would not learn of them. Close ends all the same, and leaves the lock
// to the end of the process. Reads of what memory does not have wait in the kernel.
//
// What Pebble's checksums cannot show, that a whole file is an older one or
// another's, or that a log or manifest ends too early, the mark does
// (metafs.RollbackGuard): every markEvery and at Close, the metadata get a number,
// and once that is durable it goes into MARK with prints of Pebble's files. A start
// whose files differ from the prints, or whose number is lower, is refused, and
// undone.
//
// # Data
//
//	Create ─ Write ─┬─ up to 1 MiB: Commit → segment.Store (O_DIRECT, O_DSYNC,
//	                │                         batches) ─┐
//	                └─ longer: a file, written while ───┤
//	                   it streams; Commit syncs it      │
//	                                                    └→ index (relaxed)
//
// A blob exists when the index says so. Its entry is written after the data
// are durable, relaxed: Pebble's log has one order, so the entry is durable no
// later than the Update that publishes the blob. Deleting is the index first;
// the space is given back once that is durable: files by the reaper, segments
// by the collector, which moves the last live records out of mostly dead ones.
// A start reads no blobs: the live bytes of segments are counted from the
// index, and files without an entry are found for the reaper, both in the
// background. Nobody but the reaper removes what a blob left under its name, and
// who has another blob for that name takes it back (reaper.spare).
//
// Every byte is verified each time it is read, but by Splice: with its block, or, where a
// part of a block is read again, with the checksums of the block's pages, which
// are kept in memory from the time that all of it was verified (pageSums).
// Readers hold no lock: a place that was looked up may be outdated when it is
// read, which shows as a missing file or a wrong checksum, and is answered by
// looking it up again.
//
// Splice hands out the pages of a blob's file in a pipe, which holds its pages: the page
// cache does not give them up, whatever else memory is needed for, so that what is read
// there and verified afterwards is what the pipe has. Where that was done before, it is not
// done again if the page cache has had the same pages ever since (fileio.Windows):
//
//	make a window   map 1 MiB, populate it, once; verify what ReadAt returns
//	use it          pages into the pipe; then: are they all in the page table still?
//
// Linux takes a page out of the page cache only after it took it out of all page tables:
// reclaim, truncation, holes, and writes with O_DIRECT (invalidate_inode_pages2) do; a page
// that is mapped has a reference, with which dropping caches leaves it alone; and a page
// that moves has its content. A page comes into the table of a window when it is populated,
// and never again: nobody touches the memory, and a page that nobody may touch lies between
// any two mappings, so that the kernel neither joins them nor maps pages around. So a page
// that is in the table after it was put into the pipe was in the page cache all the time
// since before it was verified, and is what the pipe got. This costs no memory that the
// system could not take back: a page that is reclaimed is verified again.
//
// It holds where splice and mappings use the same page cache. ext4, XFS, Btrfs and tmpfs
// do, which a start tries (fileio.NewPresence): not DAX, O_DIRECT or ZFS, whose splice
// copies; not overlays, which go on with another file after a copy-up. There, and where
// /proc/self/pagemap cannot be read, all is verified each time.
//
// A write through the page cache, by somebody else, changes pages that stay. It shows in
// the times or the length of the file, which are the same before the pipe is filled and
// after, and when the window was made. Between that and the socket it is sent: nobody may
// write. Whatever is wrong, ReadAt says it.
//
// Probe finds by the lengths of files alone what is missing or cut short.
//
// A segment in which a read, Verify or the collector found damage is in doubt
// (doubt.go): sealed, emptied but for what is damaged, and removed instead of
// reused when that is deleted.
//
// # Space
//
// The last 256 MiB are refused to data, half of that to metadata, and the last
// 16 MiB to deletes (less on small disks): see
// diskspace.Reserve. A neighbour may fill the disk all the same, so 128 MiB are held
// in a file (diskspace.ReserveFile), which gives way step by step when Pebble's log
// meets the end of the space. Where that is not enough the log waits
// (metafs.SpaceWait), since for Pebble its failure is the end: what is new is refused
// meanwhile, reads go on, and when there is space again so do writes. Failures that
// are not for lack of space end the taking of writes until the next start. A medium
// that became read-only is such a failure only where the log meets it: what
// diskspace.Guard sees before, it refuses, and takes again when the medium does.
//
// Lock order: KV.using, then Blobs.indexing, then Blobs.changing or KV.erasing, then KV.commit, then durability.mu; Blobs.mu,
// then nothing but reads of the index and reaper.mu; segment.Store.mu, then its allocator.mu;
// metafs.SpaceWait.mu, then diskspace.ReserveFile.mu or that allocator.mu. The
// locks of snapshots, fileio.Handles, fileio.Windows, placeCache, pageSums, fileio.Pool,
// reaper and metafs.RollbackGuard are innermost.
package local
