// Package peer finds whose program is at the other end of a connection within
// this machine, by asking the kernel.
//
//	net.Listener ── Identify ── Accept ─┬─ TCP: inet_diag, exact addresses ─┐
//	                                    └─ Unix: SO_PEERCRED, SO_PEERGROUPS ┤
//	http.Server.ConnContext = ConnContext ── of the request ── Of ◀─────────┘
//
// A Unix socket is the exact form: the kernel noted uid, gid and groups of the
// process when it connected. Of a TCP connection over loopback it knows who
// made the socket, the uid alone; gid and groups are those that the uid has in
// the machine's files of users and groups.
//
// # Invariants
//
// The kernel is asked once, when the connection is accepted: later its client's
// end may be closed, and its addresses another's. That may have come about
// before, while the connection waited to be accepted: an answer counts only if
// the connection is still there afterwards, and the end that was found is
// connected, not about to connect.
//
// Only an answer about the very two addresses, from the connection's own
// network namespace, with the inode of a socket that a process still holds, is
// one. A closed end has inode 0 and, for the kernel, uid 0; so has TIME_WAIT.
// Everything else is an error, which a door answers with 401: the caller stays
// unknown, never root.
//
// Whoever makes requests for others is the caller: a proxy, a forwarded port, a
// setuid program. That is for doors with tokens.
package peer
