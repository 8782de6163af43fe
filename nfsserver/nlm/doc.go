// Package nlm is the Network Lock Manager, version 4 (program 100021; X/Open
// XNFS, chapter 14; RFC 1813 section 6): byte-range locks for NFS clients.
//
//	LOCK UNLOCK TEST CANCEL ──► Server ──► lock.Manager (shared with FUSE)
//	      (and _MSG, answered     │  ▲            │ granted later
//	       by _RES)               │  │            ▼
//	                              │  └─────── blocked ── GRANTED ──► client's NLM
//	                              ▼                    (by its portmapper)
//	                      hosts, nsm.Monitor ── restart: SM_NOTIFY, grace
//	                                         ◄─ reboot: SM_NOTIFY, FREE_ALL
//
// # Owners
//
// The owner of a lock is the client (its address, the address of this server that it
// uses, and the name it gives
// itself), the process number and the opaque handle of the request. A client
// behind another address is another client. Owners of FUSE mounts have other
// client names, so that locks of both doors exclude each other.
//
// # Blocked requests
//
// A LOCK that has to wait is answered BLOCKED and queued in the manager. When
// it is granted, the client is called back. Clients ask again while they
// wait: that finds the queued request, or the lock that was granted
// meanwhile. A grant that was certainly not taken (refused at the first
// attempt, or no attempt could be sent) is undone; one that may have been
// taken stays, and ends with the client's UNLOCK or reboot.
//
// # Restarts
//
// Locks live in memory. A client stands in the store (package nsm) before it
// holds its first one; after a restart it is notified, and sends its locks again
// (reclaim) during the grace period, in which nobody gets a new one through
// any door. Without clients to notify there is no grace period.
//
// # Invariants
//
//   - A lock is granted to a client only after the client is durable.
//   - Per request (file, owner, range, type) there is at most one blocked.
//   - Whatever is bounded (hosts, peers, blocked requests, share reservations,
//     locks, calls to clients) is divided by address (vfs/clients/share): names are the
//     client's choice.
//   - Every blocked request ends once: answered GRANTED, called back,
//     cancelled, released with its client, or undone.
//
// Lock order: host.mu → Server.mu. The manager calls back, so Server.mu is not
// held while it grants or releases; nor while the store or a client is
// called. host.mu covers making the host durable and forgetting it.
package nlm
