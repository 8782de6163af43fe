// Package fusemount is the FUSE door: mounts of the namespace, or of
// directories in it, through go-fuse's raw interface. A node ID is an inode
// number; only the superblock's root stands for FUSE's node 1.
//
//	Mounts ─┬─ connection (one superblock) ─┬─ Server (one mount)
//	        └─ connection                   └─ Server
//
//	kernel ─┬─ /dev/fuse ── loop ─┬─ ProtocolServer ── rawFS ── vfs.FS
//	   ▲    └─ io_uring ─── Ring ─┘                               │ changes of other doors
//	   └─────────────────── invalidator ◄─────────────────────────┘
//
//	of a mount that survives its server:
//
//	kernel ── /dev/fuse ── loop ── ProtocolServer ── rawFS ── vfs.FS
//	   ▲          │                                    │
//	   │       holder (another process) ── memory ── ledger
//	   └────── notifier (another process) ◄── apart ◄── invalidator
//
// # Files
//
// What makes and ends mounts (mounts.go, connection.go, mount.go and below them
// superblock.go and device.go; takeover.go and leave.go for those that survive)
// knows the requests. What answers requests (rawfs.go, and a file for each kind of
// them) and notifies the kernel of changes (invalidate.go, sizes.go) knows its
// connection as a superblock alone.
//
// # Transport
//
// Requests come through /dev/fuse, read by a loop; or through io_uring, where the
// kernel offers it (internal/ring, whose documentation has its rules). FORGET and
// INTERRUPT come through /dev/fuse all the same, and notifications go through it.
// go-fuse answers INIT, but for a mount that survives, and handles requests; it
// reads none.
//
// The threads of a loop take turns (turns): one reads, answers what it read, and
// reads again. Most requests take less time than to wake a thread.
//
//   - The turn is passed on, to a parked thread or a new one, when a request waits or
//     takes long: mayWait knows it of some kinds, handlers of others, and a caller that asks
//     for the end of the request's context is about to wait (request.Done). What
//     nobody reported, such as a read of the disk, is seen by looking every turnTime, only
//     while there are requests.
//   - It is also passed on when more requests are to be read, as long as fewer threads
//     than processors answer requests. Who is done takes the turn of one that answers,
//     if requests are to be read, before it parks.
//   - A request that waits holds its thread and no other. When all maxLoopThreads do,
//     the kernel keeps what comes; the first that is done reads it. Waits for locks,
//     which may need other requests to end, have goroutines instead.
//   - Reads and short answers never wait (O_NONBLOCK), so they are raw system calls:
//     the scheduler takes no processor away from them. poll(2) waits, also for the
//     eventfd that ends the loop.
//
// All read the same descriptor, the one that a Holder keeps: a clone
// (FUSE_DEV_IOC_CLONE) must answer what it read, and has nothing to give where one
// thread reads at a time.
//
// Over io_uring an INTERRUPT can get lost on the way. So no wait relies on it:
// while a request waits, its caller's signals are looked at (callerWatch,
// killWatch).
//
// # Mounts and superblocks
//
// Names, attributes and pages belong to a superblock: mounts that show the same
// are coherent as the directories of one local file system are. So Mounts makes a
// mount from the /dev/fuse of a connection whose options fit (shares): fsopen(2)
// with the descriptor of a connection that has a superblock gives one more mount
// of that, with flags and a source of its own. A directory is a clone of its place
// in such a mount.
//
// No mount is the first among them, and the process holds none: the superblock,
// and with it the connection, ends with the last that the kernel has, here or in
// another mount namespace. The kernel reports that end alone; that one mount
// of several is gone shows in the mount table, which Mounts watches.
//
// Where the kernel cannot (Linux before 6.8, or 6.15 for directories), or
// fusermount3 mounts, each mount has a connection of its own.
//
// # Surviving the server
//
// The kernel ends a connection with the last descriptor of it. Of a superblock
// that survives (Options.Holder), another process has one too, beside the memory
// of its ledger (package ledger), and Mounts.TakeOver goes on with both:
//
//   - What the kernel and we agreed upon is in the ledger before the kernel is
//     answered. INIT does not come again: it is replayed, offering what was taken
//     then, and must get the same answer; else nothing is served (ErrOtherMount).
//   - Node IDs are inode numbers and generations the inodes' own. Handles keep
//     their numbers; each is in the ledger before its OPEN is answered. What they
//     stand for, and what has lost its last name, is taken up before the VFS does
//     anything in the background (vfs.Config.Restore).
//   - Locks are in the ledger before their waiters are notified.
//   - A WRITE that was answered is in the file's buffers and, until it is stored,
//     in the ledger's journal, and is made again (replay), into buffers if the store
//     takes nothing. Where its content is gone, each handle that is open to write
//     gives EIO once, over the end of servers (recordLost). To which content a handle
//     wrote is in the ledger before its first WRITE is answered (survival.bind).
//   - The kernel sends again what a server had read and did not answer
//     (FUSE_NOTIFY_RESEND, Linux 6.9), marked by resentBit. It may have been done.
//     What must not happen twice leaves a record in its own transaction (once,
//     vfs.Token), changes of bytes one in the ledger (Writes), opens their handle.
//   - A server that stops reads no more (loop.leave): the kernel keeps requests. What takes too long is not answered, but sent
//     again.
//   - No thread makes a call that may wait for the mount itself: a killed process
//     would not end. Notifications and questions for sizes are another one's (apart).
//   - The ledgers of all superblocks are taken up before the first is served, and
//     writes made again in the order in which they were made to a file, whichever
//     superblock they came through (vfs.KeptWrite.Seq). That goes for one that
//     cannot be served, too (Refused): a server that can finds it as it was.
//   - The counts of what the kernel knows are lost. Of what has no name any more,
//     it answers whether it knows it (InodeNotify). Names are dropped from its cache,
//     and what it looks up then is counted; not where something is mounted inside,
//     which the kernel would take away with the name.
//   - Pages and attributes that other doors changed when the server was killed may
//     be old. So what is open is dropped from the cache, the rest when it is opened.
//     Which directories are listed, nobody knows: what the kernel kept of them goes when
//     the time of the directory comes, with its name or its attributes. Where their
//     readers are shows by counting, if the directory did not change since they began,
//     which the ledger knows of some (dirReader.unchanged).
//
// io_uring excludes it: what lies in a ring's entries is not sent again.
//
// # Permissions
//
// The kernel checks modes and ACLs (default_permissions); the VFS is told
// that the caller is trusted and only takes owners from the credential.
//
// So most refusals never get here. Those that do, and changes of buckets, ACLs
// and file flags, are reported to Options.Done (record.go), at the one place where every
// request ends (observe.go).
//
// # What the kernel knows
//
// The kernel names an inode that it was told of until it sends FORGET: by an
// open file, a working directory, a bind mount, a cached name on its way to
// become an open. So each answer that introduces an inode is counted in a
// vfs.Holder before it is written (fillEntry: LOOKUP, CREATE, TMPFILE, MKNOD,
// MKDIR, SYMLINK, LINK, each entry of READDIRPLUS), FORGET takes back, and the
// end of the mount takes back all. What loses its last name meanwhile answers
// as an orphan; without that, open(2) of a path would fail with ESTALE when
// somebody else renames a new file over it between its lookup and its open.
//
// Counts may err high (a reply that the kernel did not take, a FORGET that was
// lost with a process), never low. Who goes on with the connection of a process
// that ended restores them (vfs.Config.Restore) with the node IDs that the
// kernel has, which are inode numbers; the generations are the inodes' own.
//
// # Caches
//
// Names, absent names and attributes stay in the kernel for a minute, pages
// until they are changed. That is right only because every change of another
// door is reported to the kernel before it is acknowledged:
//
//   - Names: the kernel serializes its own lookups in a directory with our
//     notification, so what a lookup that began earlier has found is dropped
//     as well.
//   - Attributes of an inode that the kernel knows: it numbers requests and
//     notifications, and ignores the attributes in a reply to a request that
//     began before the notification.
//   - Attributes of an inode that the kernel does not know yet, because the
//     reply that introduces it is on its way: changes are counted before they
//     are notified. A handler that finds the count moved answers with zero
//     timeouts. One that did not may still lose the race between its return
//     and its write, so it leaves a stamp for each inode that it introduces,
//     and the notification of an unknown inode with a fresh stamp is repeated
//     until the stamp is old (introWindow).
//   - Listings, of the primary superblock: the kernel need not open directories (ENOSYS to
//     OPENDIR), and keeps what it lists. It holds the directory while it lists, which the
//     notification of a name waits for, and then drops what it kept. Of its own changes it
//     knows itself, but for another parent and unknown outcomes, of which it is notified a
//     moment later. It looks for changes at the start of a listing, if it has the whole: so
//     one that begins after a change has numbers of its own (numbers), which do not lead
//     into what is old. What was dropped before it was whole, the kernel does not keep again
//     until it forgets the inode. What is older than names may be it is made to drop, so
//     that a listing brings attributes again (listings.sweep). Nobody says when a reader
//     ends: where one goes on is known for listingIdle, and for readerIdle as long as more
//     have begun than came to the end. Where room is short, the last positions of these stay.
//     Who goes on from a place that is not known starts over, and sees entries twice rather
//     than never; entries are counted in a directory that is known not to have changed
//     (dirReader.findPosition).
//   - Pages: the kernel locks a page while it is read, and the notification
//     waits for it.
//   - Sizes: no notification carries one, and the kernel goes on with the old
//     until a program asks. For a file that programs have open, a thread of
//     ours asks at once (sizes).
//
// A process beside others (vfs.FS.Exclusive) is not notified of their changes, so each use is
// compared with the store:
//
//   - Names, absent ones too, have no cache time, and listings are not kept: the kernel drops names
//     under the lock of the directory, which it holds for requests that wait for the others, or all
//     at once, with what is mounted inside.
//   - Attributes are lent where the others tell what they are about to change: until the
//     lease ends, and are recalled before they change (RecallAttrs), which takes no lock. Only GETATTR and
//     STATX lend some (rawFS.keeps), unless the answer comes late (fuseabi.Server): what LOOKUP, or a
//     request that changes something, is answered, the kernel may take whatever it was notified of. Those of
//     a file are lent only if its pages are of the same version.
//   - Pages are kept over an open only if the version of the content is the same. Before
//     a read of what is open, the kernel asks for attributes, unless it has some, and drops pages and takes a
//     new size by them (AUTO_INVAL_DATA); where it would not, it is made to (pageVersions).
//   - Files that are opened for writing go past the page cache (FOPEN_DIRECT_IO), where the
//     kernel maps such files. So no page has half of what two gateways wrote.
//   - Mapped pages are asked for when they are first touched. They stay until the file is
//     opened or read again, or asked for its attributes, through any descriptor of the mount.
//   - Options under which the kernel would show what it keeps are refused (Options.beside).
//
// The kernel's writeback cache is off unless asked for: with it, the kernel
// holds its own idea of a file's size for as long as it remembers the inode,
// and a change of size through another door would not be seen.
//
// # Deadlocks
//
// The kernel holds a directory's lock while our handler works on it, and those of
// pages while they are read or written; notifications take them too. So a handler
// notifies its own superblock of side effects through a queue. Other doors notify in
// their own goroutine: they hold no lock, and handlers never wait for them.
//
// What a superblock's request changed, the others must know before it is answered
// (beside). They would wait for one another if each did what it needs: two mkdir
// in one directory, each with its own lock of that, or two writes of one page. So
// one superblock, the primary, keeps names, the others, which came while it was
// there, have none to drop, and none has written pages while there are several:
//
//   - Their names, absent ones too, have no cache time, and listings are not kept.
//     They are still notified, but later and in the background, so that inodes are let go.
//   - Files that are opened for writing go past the page cache (FOPEN_DIRECT_IO,
//     fileHandle.direct): no page is locked while a WRITE is on its way. The pages
//     that readers of the same superblock brought back meanwhile are dropped
//     behind it. Through the cache, a page that another superblock's change dropped
//     between the copy of the bytes and their WRITE could be read back without
//     them, and stay so. What the primary had open before there were several goes
//     through the cache still.
//   - What mappings wrote arrives with its pages locked, in all superblocks. Nobody
//     is notified before it is answered, but before fsync and close are (awaitLate).
//
// So to notify one that is not the primary waits for READ at the most, which waits
// for nobody; to notify the primary waits for its requests, and those for no more
// than that. Over io_uring, a request that may notify leaves a thread for what it
// waits for, as one that waits for a lock does (internal/ring).
//
// A READ that nobody has taken from the kernel has to find a thread: of those that
// drop what they wrote, maxUntimed wait for that without a bound, the others for tellWait.
//
// A slow engine may delay it all the same: after tellWait the primary looks all its
// names up again (FUSE_NOTIFY_INC_EPOCH, which takes no lock), and pages are
// dropped when the READ that holds them ends. When the primary ends, another takes
// its place. With a kernel that does not map files past its cache (before Linux
// 6.6), or with the writeback cache, written pages stay in all, and two writes of
// one page at a time wait for tellWait.
//
// No thread of the process may wait for an answer to a system call on its own
// mount: if the process is killed then, the thread waits for good, and
// /dev/fuse stays open with it. The thread that asks for sizes has no
// /dev/fuse; nobody else makes such calls while the mount is in use.
//
// # Closes
//
// FLUSH, for which close(2) waits, is for what was written and for the POSIX locks of the
// process. So it comes for files that are opened to write, and for those that somebody has
// locked through the mount (rawFS.untold, lockers.known); others say that there is nothing to
// tell (FOPEN_NOFLUSH). A lock that is set through one of these, which is the first of its file,
// ends with RELEASE, which programs do not wait for: who meets it waits a moment (lock.Ends.Untold).
//
// # Killed callers
//
// Each request has a context (request) that ends when its caller is killed, for
// whatever waits for the engine: nobody takes the answer then. Any other signal
// ends only waits for locks. FLUSH, RELEASE and writes of the page cache, which
// may be other programs' data, have no caller. A commit that has begun is waited
// for; waits for a mutex that another request holds are not given up.
//
// # Durability
//
// Requests run relaxed (cluster.Relaxed): mkdir returns when the change is
// visible, not when it is on the disk. fsync, and close of a file that was
// written, are strict. Pages arrive through whichever handle may write, and not
// the one through whose mapping they were written, so they are counted by
// file (pageWrites).
//
// With O_SYNC, and on mounts with sync, the kernel follows what goes through its
// cache with an fsync. Of what goes past it, it passes the flag on (fileHandle.syncs), but not
// with fallocate and copy_file_range: these go by what the file was opened with (rawFS.stable).
//
// # Lock order
//
// apart.mu is held while a process is started, which takes loop.life. Mounts.making
// comes first; handlers never take it, since a mount that is made
// may ask them. Mounts.mu and connection.mu are leaves.
//
// survival.life and loop.life are held while the ledger and /dev/fuse are used by
// others than requests, and taken by who closes them. The Holder is called under
// the first.
//
// turns.mu, handleTable.mu, numbers.mu and ownerSet.mu are leaves. listings.mu comes before
// numbers.mu, dirHandle.reads before that: it is held while the VFS lists.
package fusemount
