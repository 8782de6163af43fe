// Package mem is an engine in memory, for tests. It keeps the whole contract
// of package cluster, and can be set to the manners of a distributed engine
// (Options: small transactions, latency, random conflicts, unknown outcomes)
// and made to fail at chosen calls (Faults), so that nothing above comes to
// rely on the manners of the embedded engine.
//
//	New(Options) ── KV ────┐
//	             └─ Blobs ─┴─ Disk: what outlives the engine
//
// A Disk can be given to New again after Close, as a restart, or after
// PowerCut, which drops what was not durable.
//
// Transactions are optimistic (package occ). The tree is copied lazily: a
// View costs nothing until the next commit.
//
// Lock order: KV.commit, then Disk.mu.
package mem
