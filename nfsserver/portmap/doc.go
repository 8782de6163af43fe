// Package portmap speaks with portmappers (RFC 1833): version 2 of program
// 100000, and versions 3 and 4, which are called rpcbind.
//
//	Registrar ── SET, UNSET over the Unix socket ──► rpcbind of this machine
//	Program   ◄── GETPORT, GETADDR, DUMP ─────────── clients, where none runs
//	Lookup    ── GETPORT, GETADDR ─────────────────► portmappers of clients
//
// Linux clients learn the port of NLM from the portmapper of their server and
// from nowhere else, so without one of the first two there are no locks.
//
// # Invariants
//
//   - A Registrar never takes a program away from a server that answers. It
//     replaces what a process left behind that was killed.
//   - It registers again what an rpcbind that was restarted forgot.
//   - The portmapper served here takes no registrations and forwards no
//     calls (CALLIT): nobody can use it to reach or to impersonate others.
package portmap
