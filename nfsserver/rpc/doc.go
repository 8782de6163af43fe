// Package rpc serves ONC RPC version 2 (RFC 5531) over streams: it owns
// records, credentials, versions, concurrency, memory and duplicates, and
// knows nothing of NFS.
//
//	socket ─ record reader ─ header ─ slots and budgets ─ worker ─ Proc.Handle
//	   ▲       (fragments)    (auth)   (back-pressure)      │
//	   └────── reply queue, coalesced writev ◄── Reply ◄────┘
//	                                     (duplicate cache for Proc.Cached)
//
// Programs of small messages (locks, status, the portmapper) are served over
// datagrams as well; packets is what conn is to a stream. Invoke is the other
// side: one call to somebody else's server.
//
// One goroutine per connection reads records. Each call runs on a worker of
// its own, so replies leave in any order; whichever worker finds the reply
// queue idle writes it out, together with all that was queued meanwhile.
//
// A large reply can be pages in a pipe (Call.Pages), which go to the socket as they are,
// behind what was gathered before.
//
// What a procedure can answer from memory (Proc.Quick) the reader answers
// itself (lane.go), from the record where it lies in the read buffer. It
// collects such replies while more calls have arrived, and sends them before
// it does anything that may block.
//
// # Invariants
//
//   - A connection stops reading while it is over a limit (requests or bytes
//     in flight, its own or its client's share), so a client is slowed by TCP
//     and nothing is lost. A slot is free again when its reply was written,
//     not when it was computed. Replies that the reader collected share one
//     slot and 16 KiB.
//   - Calls in flight and bytes of requests and of replies are divided by
//     client, an address (package share): no client, however many connections
//     it has, holds what others need.
//   - What has begun must go on: a record that arrives, and replies that a
//     client does not take, move 16 KiB/s over every 30 s, or the connection
//     ends (pace.go). So nothing is held for long for who does not move.
//   - When there are too many connections, one of the client that has the most
//     yields to another client's, an idle one first (conntable.go).
//   - Request bytes are reserved before they are read. Reply bytes are
//     reserved afterwards, before the call runs, and a running call never
//     waits for a budget: no cycle.
//   - A call whose connection died still runs to its end: the client sends
//     it again on a new connection and finds the answer in the duplicate
//     cache.
//   - A panic in a call is logged, answered with SYSTEM_ERR and harms no
//     other call.
//
// Lock order: Server.mu before conn.mu; dupCache.mu and those of the budgets
// are leaves.
package rpc
