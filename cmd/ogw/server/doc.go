// Package server is what a running process is: the engine, the namespace over it,
// the gateways and what operators ask.
//
//	Open ── openEngine ── openNamespace ── openGateways ── openOperators ── ensureRoot
//	           │               │                │                │              │
//	         cluster          vfs.FS        doors by         admin API at its   the first
//	         meters           mounts        protocols        socket and address, key
//	         audit            credentials   exports, locks   metrics
//
// Each step is given what the steps before made, and what it makes is complete when
// it returns: nothing is filled in later. Closing goes the other way: the gateways
// drain within a bound, mounts end, the namespace flushes, the operators' doors
// close (they report it until then), the engine closes.
//
// A process that only asks, since another one serves the folder or nobody does,
// has a Local at the most: the admin API over a store of its own.
//
// Lock order: exportBook.mu → reads of the store, NFS servers that are notified;
// credentials.mu → reads of the store; mounts.Table.mu → process.mu.
// door.mu and process.mu are leaves.
package server
