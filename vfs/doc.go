// Package vfs is the namespace: one tree of inodes over a cluster, reached
// through POSIX operations (by inode) and object operations (by bucket and
// key). It knows no protocol and no engine.
//
//	        doors: S3, REST, NFS, FUSE, Go
//	 object operations │ POSIX operations │ File
//	───────────────────┼──────────────────┼────────────
//	 namespace: inodes, dentries, links, attributes, events
//	 content:   extents, write buffers, references, collector
//	──────────────────────────────────────────────────────
//	 cluster.KV (metadata)     cluster.Blobs (data)
//
// # Packages and families of files
//
// Imports go down, and a package imports nothing beside it:
//
//	vfs           namespace, objects, open files: one type of transaction
//	              iam                                    over users: groups, policies
//	              users  format                          over records and secrets
//	              backup                                 over content: an instant, and what it holds
//	              fsck                                   over quarantine and extents
//	              content                                over all below: bytes of files
//	              quarantine                             over feed: damaged blobs
//	              attrcache                              over changeclock: attributes, decoded
//	              tokens                                 over session: what was done already
//	              xattr                                  over perm: extended attributes
//	              perm                                   over posixacl: credentials, modes, file flags
//	              bucketconf                             over rights: what a bucket keeps beside its entries
//	              damage  locate                         over content: files of damaged blobs; who holds bytes
//	              uploads                                over receive and rights: objects in parts
//	              receive                                over content: bodies of requests
//	              listing                                over rights: pages of keys and of uploads
//	              rights                                 over perm, keypath and iam: the object doors
//	              keypath                                over naming and records: keys and directories, walked
//	              posixacl  extents  ids  changeclock    over records
//	              feed  session                          who is notified, who is there
//	              secrets                                over records, sealed
//	              sharedlocks                            over records and lock: locks among gateways
//	              objects  orphans                       over records: ETags, conditions, parts; a queue
//	              record                                 keys, values, codecs
//	              checksum  naming  bodyhash  accesstime  commits   know no record
//	              fserr  seal  lock  md5lanes  policy    know nothing of vfs
//
// In vfs itself, each family uses those below it and none above; within "files",
// eleven files reach one another, since an open file and the attributes of its
// inode are one thing:
//
//	whole     open join background check repair backup
//	objects   put append copy renameobject object objectinfo delete purge list
//	          listuploads multipart bucket bucketconfig rights durability
//	          whereis xattr
//	POSIX     create unlink rename readdir dirstream setflags allocate copyrange statfs
//	          settings
//	files     file openfile piece write flush flushmark blobupload sync setattr lookup attr
//	          getattr path closebehind contents damage
//	entries   entry orphan
//	core      op fs locks dirty behind settimes keeper snap
//	          feed types objecttypes rightstypes errors
//
// The struct FS (fs.go) names only what knows nothing of it; the constructor
// (open.go) stands above all. op.go runs transactions for every family, and knows
// none: what an operation does besides its writes is an effect.
//
// # Names
//
// A directory's entries are keyed `parent name` for a file and `parent
// name/` for a directory, so both can exist, and a depth-first scan yields
// the byte order of S3 keys. A stored name is any byte string without a
// slash, the empty one included: the key "a//b" is the file "b" in the
// directory "" in the directory "a"; "/a" is the file "a" in the directory
// ""; "x/" is the directory x itself. A key's last component is never an
// empty file name.
//
// The POSIX doors cannot express "", ".", "..", names with a NUL, names over
// 255 bytes, and a file beside a directory of the same name. They show these
// escaped (package naming), under the reserved prefix ".ogw~"; a real name with
// that prefix is escaped too, so that the mapping is a bijection:
//
//	.ogw~e~NAME   "", ".", "..", names that begin with ".ogw~", or hold NUL (%00, with % as %25)
//	.ogw~f~NAME   a file that a directory of the same name shadows
//	.ogw~h~HASH   a name whose shown form would be longer than 255 bytes: SHA-256
//	              of kind and name, 160 bits in base32; key 'h' finds the name
//
// Making a name that begins with the prefix makes what it decodes to; one
// that decodes to nothing is ErrInvalid.
//
// # Directories
//
// Explicit directories (mkdir, PUT "x/") stay; implied ones, made as parents
// by an object operation, vanish in the transaction of the object operation that
// removes their last entry, but for buckets, which stay and become explicit. A
// POSIX operation never removes a directory that it
// was not asked to, since programs work in it: the one that it empties becomes
// explicit. Emptiness is tested next to the entry that
// went (first behind it, then before it), so that emptying a large directory
// in order never walks over tombstones. Times of entries live under 't' and
// are written blindly: creates in one directory do not conflict.
//
// # Rights
//
// The POSIX operations check modes and POSIX ACLs (package perm). The object
// operations ask the judge (package rights) of the subject that the context carries.
// A context without a subject is the program's own.
//
// Whether somebody chose a mode stands in the inode; the entry of a directory repeats
// what its mode denies at all. Entry and inode change in one transaction (record.RefreshEntry).
//
// # Transactions
//
// Every operation is one transaction (update), run again after a conflict;
// all it learns is set anew in each run. What it does besides its writes is an
// effect (op.go): a value that learns how the transaction ended. So what it
// changed is reported to the watchers after the commit and before the operation
// returns. Numbers for
// inodes, contents and blobs are leased before the transaction.
//
// # Content
//
// inode → content → extents → blobs. Small contents are one inline extent at
// offset 0, which holds the bytes in the metadata. Package content reads, writes
// and shares contents, and collects those that nothing names (contents.go).
//
// Blobs carry their content's ID; they are durable before a transaction
// names them. A blob without an extent is an orphan: the collector finds the
// queued ones under 'q'. Those that a crash left have numbers of an earlier
// process; they are looked for after the next start (fsck.Leftovers).
//
// # Writing through Files
//
// All Files of one inode in a process share one openFile: dirty chunks from
// a bounded pool, uploads in flight, blobs that no transaction names yet.
// Reads through every door of the process see them. A flush waits for the
// uploads and runs one transaction that replaces extents and moves size,
// times and version. If the inode's content is not the one that the
// openFile began with (an object PUT replaced it), the dirty data is dropped
// and the writers get ErrStale. All pieces are of one content, whose number (Epoch) stands
// with them: a flush or a snapshot from before the PUT drops none that came after it.
//
// What moves the end of a file in a transaction of its own (a new size, O_TRUNC, AppendObject, a
// range that is copied) and the writers through Files follow one another: writers wait, while
// what they wrote before is stored and until the transaction is over (FS.updateEnd). So
// what is appended goes behind the end that is stored, and nothing takes its place. They go on
// before watchers are notified: a kernel may have to write pages before it drops them. Where
// there is no space to store what was written, emptying the file drops it (FS.updateEmptied).
//
// A flush merges what was written into the file as it is by then, within its transaction:
// nothing of a snapshot is written. So what another process stored meanwhile stays, but
// where both wrote. What is read is a snapshot, which is compared with the store before
// each read and write where others may change it (openFile.refresh): one round trip, in
// which the attributes come, too.
//
// What describes a file reads a snapshot and then asks the open files. One
// that was flushed and closed in between is in neither: session.Table.LeftSince
// shows it, and the file is read again.
//
// # Damage
//
// Blobs are read and deleted through package quarantine alone, which keeps those
// that are damaged, and asks here which files use one (package damage).
//
// # Unlinked but in use
//
// An inode whose last link goes while this process has it open (session.Table) or
// a Holder keeps it, or while another process may have it open, becomes an orphan: no
// links, key 'o'. A directory among them has no entries and gets none (ErrNotExist). The
// last close or release
// has it removed, in batches in the background (package orphans), or the collector
// after a restart, and where there are other processes the collector alone, when all have
// said that they do not use it: see package session. Who would begin to use one then gets
// ErrStale (FS.mayUse). A Holder is for a door whose client names inodes by number
// and says when it forgets them: a FUSE mount for its kernel. File handles of
// NFS are never forgotten, and keep nothing.
//
//   - What counts a use and what removes the last link meet under one lock
//     (a shard of the table): the removal sees the use, or the use waits for the outcome.
//   - Who looks an inode up, then holds it, learns whether this process removed
//     it in between (Table.removed), and looks again.
//
// Holds are in memory. A door whose client outlives the process has to
// restore them (Holder.Restore, in Config.Restore): the collector's first pass
// removes every orphan that nobody uses. Counts that are too high keep an orphan
// until the Holder is closed, counts that are too low lose an inode that is
// referred to: so count before the client is answered, and take back after it said
// so. Open files that are restored are opened as ever: an orphan can be opened.
//
// # Users
//
// Whom the object doors let in is package users'. A store of format 1 knew users
// by name: Open converts it, in steps, before it returns (package format). Where
// Config.Keys are set, Open seals the secrets that are in clear, or were sealed
// with an older key, and has the engine erase what that replaced (package secrets).
//
// # Other processes
//
// Nothing in vfs asks whether the store is exclusive. Where that matters, it asks
// one of two packages: session for who else is there (whose orphans, staged contents
// and blobs are left over, which views still run, also in others), feed for whether it
// was notified of all that changed (whether what was read before may still be
// believed). All operations are right beside other processes; locks of files stand in the
// store then (package sharedlocks). Who has a kernel's caches to empty asks whether it is notified of all
// (FS.Exclusive), and else lets it keep nothing unasked.
//
// # What is remembered
//
// The attributes of inodes (package attrcache) are kept in memory, decoded, where no
// other process can change the store. The cache is notified of nothing:
// changeclock.Clock says whether a transaction wrote an inode that shares its slot
// since. Pairs are remembered by the engine, if at all: what is read by a few
// keys again and again is read with peek.
//
// # Backup
//
// BeginBackup holds one instant (package backup): a snapshot of the metadata, taken
// when no write waits in a buffer (backup.Gate: writers through Files pass it with
// their bytes in hand, so that they wait for the last flush, and transactions do
// not), and the blobs that it names (content.Hold: the collector passes over the
// contents that are as old). What is restored is a store when its superblock is
// in place, which comes last (Restore).
//
// # Durability
//
// Operations are durable when they return, unless the context is
// cluster.Relaxed (FUSE, whose fsync is explicit): then they are after
// SyncAll or File.Sync. Close of a File is strict for all that was changed
// through it: bytes written, copied, allocated, or cut by OpenTrunc. CloseBehind is not:
// the File stays in the table of open files, and with it what doors see of its bytes,
// until the write-behind has stored them (behindQueue). It is refused while the
// write-behind fails, so that a full store is told to who closes.
//
// # Lock order
//
//	openFile.flushMu → openFile.mu → session.tableShard.mu → dirtyPool.mu
//	Scrubber.pass → Blobs.confirming → Blobs.writing → Blobs.mu (quarantine)
//	openFile.mu → backup.Gate.pass, only if it is free at once
//	session.Table.holding, session.Readers.mu, ids.Allocator.mu, extents.Pins.mu,
//	Feed.mu, orphans.Queue.mu are leaves
//
// No lock is held while a transaction runs, except content.Store.collecting (one
// pass of the collector), openFile.flushMu, which
// serializes the flushes of one file, Blobs.writing, for memory to follow
// the store, and what is above it; no lock at all while watchers
// are notified.
package vfs
