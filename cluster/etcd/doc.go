// Package etcd keeps the metadata of a store in an etcd cluster, where several
// processes share it. It is the KV half of an engine only.
//
//	read:   first read   linearizable, its revision R is the transaction's
//	        later reads  at R, from any member that has it
//	        remembered   (occ.Memory) without asking; the next read compares the
//	                     ModRevision in the same request
//	commit: one Txn
//	        if    each key that was read has the ModRevision that was seen (0: absent),
//	              no pair of a scanned range has a ModRevision above R,
//	              each pair that a scan met has the ModRevision that was seen,
//	              each pair that is expected has that value, or is absent,
//	              the slot has the ModRevision of this client's last use
//	        then  put and delete what was written, put the slot
//	        else  get the slot, and from the second refusal on what was read by key,
//	              if that does not make the request too large
//
// So the reads of an Update hold at its commit, and a View is one revision. A
// transaction that wrote nothing is committed by its first read; if it was answered
// from memory alone, by one request that compares all it used. That one gets keys
// and no values: etcd answers a Txn of nothing but comparisons from the past of the
// member that is asked.
//
// # Many at a time
//
// First reads that wait while others are under way share the next request (gather): keys that
// several ask for are asked for once. So do commits: each is a Txn within one Txn, with its
// own comparisons and slot. etcd decides all of them before it writes, so that commits of
// which one writes what another one read do not go together. What several set that none has
// read, as the time of a directory in which many make names, the last one that holds sets. Those
// that scanned, are large or urgent go alone, and wait for nobody. A request that is lost is lost
// for all in it: each finds its own outcome, but not whether a later one set the same, so that it
// remembers nothing of what it wrote.
//
// # Members
//
// All requests of a client go to one member, any at first, and to the next one from a request
// on that it did not answer: one that stands still keeps its connections. Reads, fences and
// urgent commits are sent again after tryTimeout, other commits are fenced after commitTimeout.
//
// # Many that write the same
//
// A transaction runs first on what is remembered, and when that was refused, on what it
// reads anew. Refused again, it knows which pairs changed, and what all it read is now:
// it waits for its turn at the pairs that changed (occ.Turns), among the transactions of
// this client, and runs on what is known by then, so that its next commit follows one
// round trip after the last one, as those of others do. Without it, one that reads
// much would have no turn beside others that write one pair as fast as they can. Between
// clients nothing is ordered: the one that is nearer to the leader wins more often, and
// the pauses between attempts give the others their chance.
//
// # Keys
//
//	PREFIX k                     a pair of the store; k does not begin with 0xFF
//	PREFIX 0xFF "slot/" LEASE/N  the last commit, or fence, of one slot
//	PREFIX 0xFF "joint"          written by commits in one Txn, never read
//	PREFIX 0xFF "compacted"      written by who compacts, whose turn it then was
//
// # Unknown outcomes
//
// An answer can be lost while its commit happened, or is yet to happen. Every
// commit goes through a slot, a key of this client that one commit at a time
// uses: the commit compares the slot's ModRevision and writes its own number
// into it. When the answer is lost, the client writes a fence under the same
// comparison. If that succeeds, the commit has not happened and cannot happen
// any more, and the transaction runs again. If it does not, the slot holds the
// number of the commit, which then happened. Nor does a commit count twice that a
// proxy sends twice: the second copy finds the number of the first in the slot. Only
// when etcd stays away for resolveTimeout is the outcome unknown to the caller as well.
//
// Slots hang on a lease: they are gone a minute after their process. A commit
// never makes its slot, so that one whose lease ended cannot commit. A client that
// finds a slot gone, or a lease that the members do not know, takes a new one.
//
// # History
//
// etcd keeps every revision until it is compacted. Each client notes the
// revision once a minute and compacts, unless another did, to the one that it
// noted ViewMax ago by its own clock: every transaction that began since reads
// at a later revision. One that runs for longer ends with ErrUnavailable.
//
// # Limits
//
// A transaction may hold MaxOps operations, which is etcd's own bound less the
// slot, and 1.25 MiB; etcd takes 1.5 MiB, comparisons included. All pairs
// together are bounded by etcd's quota, 2 GiB unless its operator raised it
// (8 GiB at the most): a full one is ErrNoSpace.
//
// Requests of a client share one connection, as streams that do not wait for each
// other, unless the members, or a proxy, bound these (--max-concurrent-streams). Commits
// beyond maxSlots wait for their turn, but for urgent ones (cluster.Urgent). maxReads and
// maxCommits requests of many are under way at a time.
//
// A scan from its end makes etcd read and sort the whole range for each page.
//
// Erase compacts and defragments each member. What a member wrote into its log
// stays there until the member has taken its next snapshots.
//
// Lock order: slots.mu, compactor.mu and members.mu are not held together, nor during a
// call to etcd.
package etcd
