// Package share divides what a server has (calls in flight, bytes of memory, clients
// that are remembered) among its clients. A Tally refuses what a client cannot have
// now, a Pool has it wait:
//
//	Pool ── Holder of client a ── waiting, first come, first served
//	   └─── Holder of client b ── waiting
//	   ring: the clients that wait, each in its turn
//
// Who takes and gives often joins, and has its client's Holder or Part at hand.
//
// The rule is that of switches which share their memory among ports (Choudhury
// and Hahne, "Dynamic queue length thresholds", 1998): a client may hold as
// much as is still free. One alone gets half, two get a third each, and
// something is left for whoever comes next, without a count of clients. The
// floor is what every client may hold as long as there is any.
//
// # Invariants
//
//   - No client waits for another's units while it holds less than its floor
//     and that much is free; and what it asks for within its floor is kept
//     for it when it becomes free, however small the others' wishes are.
//   - Among clients that wait, units go round in turns, not by who asks more
//     often.
//
// Lock order: Pool.mu is a leaf.
package share
