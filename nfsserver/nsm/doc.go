// Package nsm is the status monitor of the lock protocol (program 100024,
// version 1; X/Open XNFS, chapter 11): who must hear of a restart on either
// side.
//
//	nlm ── Watch, Forget ──► Monitor ◄──► peers and state number in the store
//	                           │ Notify, after a restart
//	                           ▼
//	              status monitors of clients (found by their portmappers)
//
//	clients ── SM_NOTIFY (I have rebooted) ──► Program ── Rebooted ──► nlm
//
// # Invariants
//
//   - A peer stands in the store before its first lock is granted, and until
//     it has had no locks for a while. So after any crash those are known who
//     may want locks back.
//   - The state number is odd and grows with every start; it is stored before
//     anybody is notified.
//   - A peer is notified from the address that it knows this server by: clients
//     find their locks by it.
//
// Each process that serves a store has peers and a state of its own, kept
// under its instance name. Where several serve one store, locks outlive them: there are no
// peers but those of a process that had the store for itself before.
//
// Lock order: Monitor.mu is a leaf; the store is not called with it.
package nsm
