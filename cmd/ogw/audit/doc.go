// Package audit is the log of who did what: one line of JSON for every act of
// administration, every refusal of access and, on request, every operation on
// data.
//
//	doors ── auditor (cmd/ogw/server) ── Log ─┬─ classes that are switched on
//	         one row an operation      ├─ limiter: refusals of each client
//	                                   └─ sink ─┬─ file, rotated by size
//	                                            └─ syslog, RFC 5424
//
// The doors know nothing of this package: each calls a function of its own
// configuration how a request ended, and cmd/ogw makes an Event of it.
//
// # Invariants
//
// Nothing that is logged can end a line or pass for another field: a line is
// one JSON object, and what cannot be printed is escaped before it gets there.
//
// An act that succeeded is always a line. What did not change anything
// (refusals, failures) is bounded for each client and in all, and counted
// where it is left out: it can neither fill the disk nor push the acts out of
// the files by rotation.
//
// The file is only appended to. A link in its place is refused.
//
// Record never fails and never waits for a network: what cannot be written is
// counted, reported in the log of the process, and in a line (operation
// Lost) once writing works again. The act that it records happened already.
//
// # Lock order
//
// Log.mu, then nothing: sinks are called with it held and have no locks that
// outlast a call.
package audit
