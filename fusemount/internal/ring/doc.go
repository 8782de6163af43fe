// Package ring serves a FUSE connection whose requests come through io_uring
// (Linux 6.14, CONFIG_FUSE_IO_URING): it feeds go-fuse's ProtocolServer with
// them, and hands its answers to the kernel.
//
//	                     ┌─ queue (one for each CPU)
//	kernel ── io_uring ──┤    thread ── entry ─┐
//	   │                 │    thread ── entry ─┼─ ProtocolServer
//	   │                 └─ queue ...          │
//	   └──── /dev/fuse ──── Ring.Serve ────────┘
//	       FORGET, INTERRUPT, what came before the ring
//
// # Life
//
// New does what the kernel may refuse: it makes the first threads' rings and
// memory. Until Start a Ring may be given up with Discard. Start comes when the
// kernel and go-fuse agreed upon the connection (INIT with CAP_OVER_IO_URING):
// from the registration of the first entries on, the kernel sends requests nowhere
// else, so that after it, successful or not, Serve must run. Serve returns when
// the connection is gone and all requests are answered.
//
// # Threads
//
// The kernel has a queue of requests for each possible CPU, and in it entries, each
// the memory of one request.
//
//   - A thread has an entry and an io_uring of its own, and nobody else touches
//     either. One system call (FUSE_IO_URING_CMD_COMMIT_AND_FETCH) hands over its
//     answer and waits for the next request. So a request wakes a thread on its own
//     CPU, and no other.
//   - The kernel writes a request into the entry on the thread that answered last
//     there, when that is in the kernel. A thread that did something else meanwhile
//     could wait for what only it can bring about: so threads answer requests, and
//     do nothing else. They are locked to their goroutine and end with it.
//   - A thread is busy as long as its request takes. When fewer than spareThreads
//     of a queue wait for requests, another is started, up to the limits of the
//     mount (Config.Threads) and of the process (maxAllThreads).
//   - Threads run on the CPU of their queue. A large READ or WRITE may leave it
//     (roamBytes): there another core is worth its waking.
//   - The memory of an entry is the kernel's until the connection is gone. A thread
//     that ends otherwise leaves it mapped.
//
// # Requests that wait for other requests
//
// A request that waits for a lock needs the one that unlocks, and one that notifies
// other superblocks of a change (Config.Several) needs READs to be answered. One of a
// kind that seldom waits says so when it does (Ring.Waits).
//
//   - Such a request waits only when another thread of its queue waits for
//     requests, or is about to; one is started for that. If none comes within
//     lockAdmission, a lock is refused with ENOLCK.
//   - The kernel queues what finds no entry, and looks at its queue only when a
//     request is answered, not when an entry is registered. If all that are being
//     answered may wait, somebody has to bring about an answer: dispatch makes the
//     kernel ask for attributes on that CPU (Config.Probe), and after that answer it
//     takes what is queued. It is called when a request begins to wait while others
//     may be queued, and when a thread was added while some wait or are queued.
//   - Whether others may be queued is known by counting: queue.full counts the
//     moments since which they may be, queue.clear is the last one at which it was
//     seen that none were.
//
// # Interrupts
//
// INTERRUPT comes through /dev/fuse, so it may overtake its request; it is tried
// again for a second (interruptTries). It may also get lost in the kernel: a signal
// that comes while a request is handed over is reported to nobody. So whatever waits
// within a request has to look at its caller's signals itself; the FUSE door does
// (callerWatch, killWatch).
//
// # End
//
// The kernel ends the connection with the last mount of its superblock, or when it
// is aborted: reads of /dev/fuse and the io_urings fail then (isGone). Requests
// that still wait are interrupted until each thread has ended.
//
// # Lock order
//
// Ring.mu guards the set of entries. It is held while requests are interrupted,
// which takes go-fuse's lock for those. Everything else is atomic.
package ring
