// Package holder keeps FUSE connections open while no server does.
//
// The kernel ends a connection when its last descriptor is closed, and with it
// everything that programs have open on the mount. A holder is a process of its
// own that has each descriptor too, and beside it the memory in which the
// server writes down what its successor must know:
//
//	server ── /dev/fuse, memory ──► holder ── the same ──► next server
//
// The holder neither reads requests nor looks into the memory. A request that
// no server reads waits in the kernel.
//
// # Protocol
//
// A Unix socket of type SOCK_SEQPACKET, for processes of the same user or of
// root. Each message is one JSON value; descriptors go along (SCM_RIGHTS).
// Connections are served one after the other: the next server is answered when
// the one before it has closed its connection, which the kernel does when it is
// gone. That is the fence; no time-out hands over a mount that is served.
//
// # End
//
// The holder ends when it holds nothing and no server is connected. It drops a
// connection that the kernel ended (umount, abort): it looks when no server is
// connected, since each request would wake it otherwise; a server announces that
// itself. SIGTERM ends it and all that it holds, for a machine that shuts down;
// SIGINT and SIGHUP, which are meant for a terminal's programs, do not.
package holder
