// Package nlm is the Network Lock Manager, version 4 (program 100021; X/Open
// XNFS, chapter 14; RFC 1813 section 6): byte-range locks for NFS clients, and share reservations,
// of DOS and Windows.
//
//	LOCK UNLOCK TEST CANCEL ──► Server ──► lock.Locks (shared with FUSE)
//	      (and _MSG, answered     │  ▲            │ granted later
//	       by _RES) SHARE UNSHARE │  │            ▼
//	                              │  └─────── blocked ── GRANTED ──► client's NLM
//	                              ▼                    (by its portmapper)
//	                      hosts, nsm.Monitor ── restart: SM_NOTIFY, grace
//	                                         ◄─ reboot: SM_NOTIFY, FREE_ALL
//
// # Owners
//
// The owner of a lock is the client (its address, the address of this server that it uses,
// and the name it gives itself), the process number and the opaque handle of the request. A
// client behind another address is another client. Linux numbers processes anew for each
// address of a server, so that they say nothing without it. Owners of FUSE mounts have
// other client names, so that locks of both doors exclude each other.
//
// # Blocked requests
//
// A LOCK that has to wait is answered BLOCKED and queued in the manager. When
// it is granted, the client is called back. Clients ask again while they
// wait: that finds the queued request, or the lock that was granted
// meanwhile. A grant that was certainly not taken (refused at the first
// attempt, or no attempt could be sent) is undone, and so is one that was cancelled:
// the client has what it held before (LockFunc's cancel). One that may have been
// taken stays, and ends with the client's UNLOCK or reboot.
//
// # Share reservations
//
// They are in lock.Share: of an owner without a process number, one for each file, which the
// next SHARE replaces. They never wait. Everything else about locks holds for them: what is
// bounded, restarts, reboots, other gateways.
//
// # Restarts
//
// Locks live in memory. A client stands in the store (package nsm) before it
// holds its first one; after a restart it is notified, and sends its locks again
// (reclaim) during the grace period, in which nobody gets a new one through
// any door. Without clients to notify there is no grace period.
//
// # Reboots
//
// A lock has the state number of the client's status monitor that came with it, or was the
// last one before (lock.Lock.Era). A notice of a reboot ends what has another number, at
// all addresses of the server: the client may lock before its notice arrives, and a notice
// may arrive twice. A LOCK with another number ends nothing: Linux clients may send two in
// one boot (eraOf). SHARE comes without a number.
//
// # Beside other gateways
//
// There locks stand in the store (lock.Remotes) and are the client's own: they outlive the
// gateway, and any other one serves the client when the address that it uses moves there,
// or at once. Nobody is notified of a restart, there is no grace period, and a reclaim is
// granted as a LOCK. What ends a lock (UNLOCK, FREE_ALL, a notice, the operator) is done in
// the store before it is answered, at whichever gateway; else the client is told to ask
// again. A blocked request is of the gateway that is to call back:
//
//	the gateway dies           it is withdrawn; the client asks again (Linux: every 30 s)
//	asked again at another     it waits there; the first one is told, and calls nobody
//	CANCEL, UNLOCK at another  it is withdrawn, by owner and range
//	granted, and not taken,    given up, unless the owner asked any gateway for anything
//	or cancelled by then       since (LockFunc's cancel): it may know of the grant by that
//
// What a gateway knows of a host (its port, its last state number) is a help, and may be
// forgotten.
//
// # Invariants
//
//   - A lock is granted to a client only after the client is durable, or with the lock.
//   - Per request (file, owner, range, type) there is at most one blocked.
//   - Whatever is bounded (hosts, peers, blocked requests, locks, calls to clients) is divided
//     by address (vfs/clients/share): names are the client's choice.
//   - Every blocked request ends once: answered GRANTED, called back,
//     cancelled, released with its client, or undone.
//
// Lock order: host.mu → Server.mu. The manager calls back, so Server.mu is not
// held while it grants or releases; nor while the store or a client is
// called. host.mu covers making the host durable and forgetting it.
package nlm
