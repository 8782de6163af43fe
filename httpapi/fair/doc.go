// Package fair divides what a server has among its clients, so that none can
// take all of it.
//
//	accept ──── Listener ── net/http ── door
//	            connections             │
//	            by address              ├ Pool   requests, bytes of documents,
//	            idle ones yield         │        large buffers: by user or address
//	                                    └ Proxies  whose address counts
//
// # Invariants
//
// A client holds at most as much of a Pool as is still free, or its floor:
// one alone gets half, two get a third each, and something is always left for
// whoever comes next. Nothing is taken back from a request that runs; what
// ends requests that stand still is httpapi's pace.
//
// A client is an address until it proved to be a user. An IPv6 address counts
// by its first 64 bits, which is what one subscriber gets.
//
// # Locks
//
// Pool and Listener have one lock each, held for a map look-up; neither is
// taken while the other is held, and nothing blocks under either.
package fair
