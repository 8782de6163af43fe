// Package lock keeps advisory locks on files for all doors of a process:
// POSIX byte ranges (fcntl), open-file-description ranges, which differ only
// in who owns them, whole-file locks (flock), and share reservations (NLM SHARE). Locks bind no one who does not
// ask: reads and writes never look at them.
//
// Locks is what doors ask. A Manager has them in memory, where one process uses the
// store; where several do, vfs keeps them in the store. File decides for both.
//
//	FUSE GETLK/SETLK/SETLKW ──┐            ┌ per file: held ranges, flocks, shares,
//	NLM LOCK/UNLOCK/TEST ─────┼─ Manager ──┤           waiters in order of arrival
//	NLM SHARE/UNSHARE ────────┘            └ per owner: what it waits for
//
// # Invariants
//
//   - Of one owner, ranges in one file never overlap, and neighbours of the
//     same type and era are merged.
//   - No two owners hold overlapping ranges of which one is exclusive, nor shares of which
//     one does what the other denies (Type: the same rule).
//   - A waiter conflicts with something that is held: whenever something is
//     released or weakened, waiters are granted in order of arrival. In a
//     grace period, waiters for ranges and shares need no conflict to wait for.
//   - In a grace period, nobody through any door gets a range or share but by Reclaim.
//   - The wait-for graph of POSIX ranges has no cycle. It is checked when a
//     request begins to wait, and again for those who go on waiting when
//     somebody else was granted something in their file.
//   - A file without locks and waiters takes no memory.
//
// # Lock order
//
// Manager.mu is a leaf, but that a Journal is called under it. Other callbacks
// run without it.
package lock
