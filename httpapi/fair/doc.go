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
// directions (frameConn), which also report bodies that nobody read.
//
// A client is an address until it proved to be a user. An IPv6 address counts
// by its first 64 bits, which is what one subscriber gets.
//
// # Idle connections
//
// That a connection begins or ends a request is an atomic store of its own: the turn
// in which it became idle, or none. Who needs room looks at all connections for the
// longest idle one that may yield. One that becomes idle looks, after its store,
// whether anybody waits, and who looks for room says before that it may have to
// wait: one of the two sees the other.
//
// # Locks
//
// frameConn, then headCount, then Listener or Pool: those two have one lock each,
// and neither is taken while the other is held. A request takes none of a Listener,
// and the Pool's for the part of its connection, without a look-up. Nothing blocks
// under any but a reader of frameConn, which waits with its lock released.
package fair
