// Package backup keeps copies of stores in a repository, and brings them back; Move copies
// one without a repository.
//
//	store ── admin API ──→ Run ──→ Repository ──→ Restore ──→ empty store
//	         (Source)  │            │
//	                   │    Storage: a folder, or a bucket of S3
//	                   └─→ Move ──────────────────────────────→ the new store
//
// # Layout
//
//	ogw-backup.json       makes it a repository: format and ID
//	lock                  who writes
//	snapshots/ID.json     one backup: what there is, published last
//	catalogs/SESSION/N    lists of what a snapshot consists of
//	packs/SESSION/N       the bytes of blobs and of larger values
//	sessions/SESSION      a backup that began and published nothing yet
//
// Every object is written once, whole and durably, under a name that nobody used
// before; only lock, and a pack that Prune makes smaller, are replaced. So
// whatever ends a backup, what it moved is there whole or not at all.
//
// # Catalogs
//
// A snapshot is one sorted list of entries. The key of one is 'm' and the key of
// a pair of metadata, or 'n' and the ID of a blob. Its value stands in the
// entry, or is a piece of a pack. The list is kept in layers: a full one, and what
// was set and deleted since, one layer for each backup. A backup merges the
// layers of the last snapshot with what the store has now, both in order, and
// writes the differences: it holds none of the lists in memory. When the
// differences are as long as half of the full layer, it begins a new full one.
//
// A piece is known by its key: a value of metadata and the digest of its bytes, or
// a blob and its CRC. IDs of blobs are never given twice; a store and a restored
// copy of it that went other ways differ in the CRC.
//
// # Going on
//
// Each pack begins with a list of what is in it. A backup that was killed leaves
// its packs, and its session. The next one reads their lists, which are sorted, as
// further layers to find pieces in. It takes an instant of its own: only the
// catalog, which is small, is written anew.
//
// # Moving
//
// A pass of Move has the new store hold the metadata of an instant (vfs.Move compares
// pair by pair), then lists its blobs beside the names in the metadata, both in order:
// what no file has any more it removes, what is missing it copies, in streams of the
// source that go straight into the engine. What there is in the new store says all about
// passes before; of blobs whose record went or changed, it keeps what they were until they
// were compared: the names are those of other blobs where the source was set back to an
// earlier time. It is a store when the last pass has set its superblock.
//
// # Checks
//
// A manifest holds its own digest, and the digests of the parts of its catalog
// (SHA-256); an entry those of its piece: of a value 128 bits of SHA-256, of a
// blob its CRC64NVME, which the store gave. They find damage; they do not keep
// out who may write to the repository.
//
// # Bounds
//
// Of packs, packsInFlight are in memory, each twice for a moment, and one that is
// being filled; of each layer one part (partBytes), of which there are maxLayers at
// the most; jobs, as many as packs, hold maxJobKeys entries each; names of blobs are
// sorted in runs of sortRun, on disk beyond that. Whoever reads a snapshot has packs of
// cachedBytes, of which several may read and use some at a time.
package backup
