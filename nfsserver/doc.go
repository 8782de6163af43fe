// Package nfsserver serves NFS version 3 and MOUNT version 3 (RFC 1813) over
// TCP, and with them NLM version 4 and NSM over TCP and UDP, all on one port.
//
//	client ─ rpc (records, credentials, slots, duplicates)
//	           │ one call
//	           ▼
//	         request: handle → export → inside it? → whose rights
//	           │
//	   ┌───────┼───────────────┬──────────────────────┐
//	 names   attributes   READ WRITE COMMIT     MNT UMNT NULL READLINK
//	   │       │               │                      │
//	   │       │           openFiles            backend (go-nfs servers
//	   │       │               │                 over in-memory pipes)
//	   └───────┴──── vfs ──────┴──────────────────────┘
//
// Sub-packages: xdr encodes, rpc is the layer below NFS and knows nothing of
// it, backend hands calls to the library, nlm keeps locks with nsm's help, and
// portmap makes that all known.
//
// # Handles
//
// A file handle is file-system ID, inode and generation, with the export
// that it came through and a code that keeps clients from making up their
// own (handle.go). It means the same after a restart and on every gateway
// over the same store that has the export.
//
// An export is what lies below its path now: no symbolic link leads there, and
// MNT follows those below as in a chroot to it. A directory that is made anew
// is another root; the handles of the old one are stale, and so are those of
// what was moved out, through any door. Of a file with several links one must
// lie inside. Over a store that other processes change, a move by one of them
// is noticed within a second.
//
// # Who may call
//
// AUTH_SYS is the word of the client's kernel, and an export's Networks say
// whose. From ports of 1024 and above it is the word of any of its users:
// exports refuse those (ACCES) unless they are Insecure, and NLM and NSM, whose
// calls may name no export, where no export that the client has is
// (AUTH_TOOWEAK).
//
// # Large reads
//
// READ of 64 KiB and more, from the start of a page on, is answered with pages of the store's
// files where these are all of what is read (vfs.File.Splice): through a pipe, without
// copies, as package httpapi sends objects. What is not stored yet, small, or damaged, and
// what is beyond the pipes that there are, is read into a buffer.
//
// # Stability of writes
//
// UNSTABLE data goes to the buffers of the vfs and from there to the store
// in the background; COMMIT and the other stabilities return when it is
// durable. The write verifier is random at the start and changes whenever
// written data may have been lost: the flush of a file failed. A COMMIT reads
// it last, after every close of the file that is under way has reported its
// outcome, so a client never believes lost data to be committed. A client that goes to
// another gateway of the store finds another verifier there.
//
// Where other gateways change the store, READ and WRITE begin with the attributes as they
// are then (vfs.File.Refresh). READ answers with these, from before the bytes. Locks are the
// client's there, not the gateway's (package nlm).
//
// NFSv3 has no open and close. Files stay open between calls, a bounded
// number of them, and are flushed and closed when nobody used them for a
// while. Rights are checked per call as a kernel's server checks them: an
// owner may always read, write and set the size, since the client checked when
// the program opened the file.
//
// # Requests sent again
//
// A client that gets no answer sends its request again, for as long as it
// takes. While the process lives, package rpc answers from its cache. What a
// dead process had done but not answered is recorded in the store, in the
// same transaction (vfs.Token): making, removing, renaming and linking
// succeed when they are sent again to the next process, and do nothing.
//
// # Listings
//
// A cookie is a keyed digest of an entry's position in the directory, 63
// bits, the same in every process. The positions of recent replies are
// remembered; other cookies are looked for by scanning; if the entry is gone
// too, the listing starts over and shows entries twice rather than missing
// one. The cookie verifier is always 0: no change makes cookies invalid.
//
// # What is reported
//
// Config.Done hears of refusals and of changes of buckets, with DoneAll of
// every call, where each ends (request.handler, Server.mnt, a connection
// that is turned away). GETATTR and NULL that are answered on the reader
// (Proc.Quick) succeed and are never reported. A Record never holds a secret.
//
// # Invariants
//
//   - No attributes from before an operation are sent unless nothing else
//     changed the object in between.
//   - A handle is good for what lies in its export at the time of the call,
//     and has that export's rights, whichever way it came (border.go). What a
//     call began with it may finish while the file is being moved out.
//   - Every error of vfs has one status (status.go). Calls that would fail
//     because the server is stopping are dropped instead: the client sends
//     them to the next process.
//
// Lock order: openFiles.mu → openFile.permMu. cookieCache.mu and
// mountTable.mu are leaves. No lock is held while the vfs is called.
package nfsserver
