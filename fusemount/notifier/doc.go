// Package notifier makes the calls that may wait for the server of the mount
// itself, in a process of its own.
//
// A notification takes locks that requests hold (a directory's, those of pages
// that are being read). If the server is killed meanwhile, its thread waits in
// the kernel until those requests are answered, where no signal reaches it. As
// long as it does, the process does not end: who waits for its end does not start
// the next one, and its files stay open, the lock of the store among them. So for
// a mount that survives its server, another process waits:
//
//	server ── line ──► thread ── write ──► /dev/fuse
//	                          └─ stat ───► the mount
//
// There is one for each superblock. It has a /dev/fuse of its own (a clone), no
// other files, and ends with the server; a thread that waits then does so until
// the next server answers, or the connection ends. A clone does not keep requests
// that were read elsewhere, so if nobody else has the connection, they end.
//
// # Protocol
//
// A line is a pair of sockets (SOCK_SEQPACKET) with a thread at the other end, for
// one call at a time: a message with a letter for what to do, and one that answers.
// The server makes lines as it needs them, up to maxLines, and hands their ends
// over through the control socket. The end of that ends the process.
//
// # Lock order
//
// Client.mu is a leaf.
package notifier
