// Package fair divides what a server has among its clients, so that none can
// take all of it.
//
//	accept ──── Listener ── net/http ── door
//	            connections             │
//	            by address              ├ Heads  what their heads take: by address
//	            idle ones yield,        ├ Pool   requests, bytes of documents,
//	            incomplete heads        │        large buffers: by user or address
//	                                    └ Proxies  whose address counts
//
// # Invariants
//
// A client holds at most as much of a Pool as is still free, or its floor:
// one alone gets half, two get a third each, and something is always left for
// whoever comes next. Nothing is taken back from a request that runs; what
// ends requests that stand still is httpapi's pace.
//
// What a client had the server keep before a handler asked for it is charged to
// its share of the pool of heads: with HTTP/1 from the first byte of a head until
// the answer was written (headCount), with HTTP/2 by the frames in both
// directions (frameConn), which also tell of bodies that nobody read.
//
// A client is an address until it proved to be a user. An IPv6 address counts
// by its first 64 bits, which is what one subscriber gets.
//
// # Locks
//
// frameConn, then headCount, then Listener or Pool: those two have one lock each,
// held for a map look-up; neither is taken while the other is held. Nothing blocks
// under any but a reader of frameConn, which waits with its lock released.
package fair
