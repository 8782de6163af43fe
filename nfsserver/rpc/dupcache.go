package rpc

import (
	"container/list"
	"hash/maphash"
	"net/netip"
	"sync"
	"time"
)

const (
	// dupEntriesPerClient is how many answers are kept for one client
	// address: more than it may have in flight on several connections, since
	// what it sends again after a reconnect is what was in flight.
	dupEntriesPerClient = 1024
	// dupMaxReply is the longest answer kept. All answers of cached
	// procedures (attributes and a handle) are far below.
	dupMaxReply = 1 << 10
	// dupMaxBytes bounds the whole cache; the client that was quiet longest
	// goes first.
	dupMaxBytes = 32 << 20
	// dupEntryBytes is what an entry costs beside its answer.
	dupEntryBytes = 160
	// dupLife is how long an answer is kept: longer than clients pause before they connect
	// again and send what was in flight (Linux: up to 3 minutes), shorter than it takes
	// most that begin with the same transaction numbers at each start to be back there.
	dupLife = 5 * time.Minute
)

// dupKey identifies a call that was sent again. The port is not part of it,
// as a client may reconnect from another; credentials and arguments are, so
// that clients behind one address do not take each other's answers.
type dupKey struct {
	xid, prog, vers, proc uint32
	hash                  uint64
}

type dupEntry struct {
	key   dupKey
	done  chan struct{} // closed when reply is set
	reply []byte        // results behind the header; nil: not to be replayed
	ended time.Time     // when; zero while it runs
	bytes int
}

type dupClient struct {
	addr    netip.Addr
	entries map[dupKey]*dupEntry
	ring    []*dupEntry // oldest at next once full
	next    int
	running int // calls
	bytes   int
	elem    *list.Element
}

// dupCache is the duplicate request cache (RFC 1813 section 4.4). It forgets no call that
// runs: sent again, that would run beside itself, or after what the client sent next.
type dupCache struct {
	seed maphash.Seed
	now  func() time.Time

	mu      sync.Mutex
	clients map[netip.Addr]*dupClient
	lru     *list.List // of *dupClient, most recent first
	bytes   int
}

func newDupCache() *dupCache {
	return &dupCache{seed: maphash.MakeSeed(), now: time.Now, clients: make(map[netip.Addr]*dupClient), lru: list.New()}
}

func (d *dupCache) key(c *Call) dupKey {
	var h maphash.Hash
	h.SetSeed(d.seed)
	var id [12]byte
	put32(id[0:], c.Cred.UID)
	put32(id[4:], c.Cred.GID)
	args := c.ArgBytes()
	put32(id[8:], uint32(len(args)))
	h.Write(id[:])
	h.Write(c.Cred.Machine)
	h.Write(args) // all: a WRITE may differ from one before in its last byte alone
	return dupKey{c.XID, c.Prog, c.Vers, c.Proc, h.Sum64()}
}

func put32(b []byte, v uint32) {
	b[0], b[1], b[2], b[3] = byte(v>>24), byte(v>>16), byte(v>>8), byte(v)
}

// begin returns the entry of c and whether it is new: then the caller runs
// the call and finishes the entry, else it waits for done and replays.
func (d *dupCache) begin(c *Call) (e *dupEntry, isNew bool) {
	key := d.key(c)
	addr := c.Remote.Addr()
	d.mu.Lock()
	defer d.mu.Unlock()
	cl := d.clients[addr]
	if cl == nil {
		cl = &dupClient{addr: addr, entries: make(map[dupKey]*dupEntry)}
		cl.elem = d.lru.PushFront(cl)
		d.clients[addr] = cl
	} else {
		d.lru.MoveToFront(cl.elem)
	}
	if e := cl.entries[key]; e != nil {
		if e.ended.IsZero() || d.now().Sub(e.ended) < dupLife {
			return e, false
		}
		d.drop(cl, e)
	}
	e = &dupEntry{key: key, done: make(chan struct{}), bytes: dupEntryBytes}
	cl.entries[key] = e
	if len(cl.ring) < dupEntriesPerClient {
		cl.ring = append(cl.ring, e)
	} else {
		cl.skipRunning()
		d.drop(cl, cl.ring[cl.next])
		cl.ring[cl.next] = e
		cl.next = (cl.next + 1) % dupEntriesPerClient
	}
	cl.running++
	d.charge(cl, e.bytes)
	return e, true
}

// finish sets the answer and lets duplicates have it. Without a replayable
// answer the entry goes, and the next duplicate runs.
func (d *dupCache) finish(c *Call, e *dupEntry, results []byte, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	cl := d.clients[c.Remote.Addr()]
	e.ended = d.now()
	if cl != nil {
		cl.running--
	}
	if cl != nil && cl.entries[e.key] != e {
		cl = nil // evicted while it ran, since all did
	}
	if ok && len(results) <= dupMaxReply {
		e.reply = append(make([]byte, 0, len(results)), results...)
		if cl != nil {
			e.bytes += len(results)
			d.charge(cl, len(results))
		}
	} else if cl != nil {
		d.drop(cl, e)
	}
	close(e.done)
}

// drop takes e out of its client; the ring may go on pointing to it.
func (d *dupCache) drop(cl *dupClient, e *dupEntry) {
	if cl.entries[e.key] == e {
		delete(cl.entries, e.key)
		cl.bytes -= e.bytes
		d.bytes -= e.bytes
	}
}

func (d *dupCache) charge(cl *dupClient, n int) {
	cl.bytes += n
	d.bytes += n
	for at := d.lru.Back(); at != nil && d.bytes > dupMaxBytes; {
		oldest := at.Value.(*dupClient)
		at = at.Prev()
		if oldest == cl || oldest.running > 0 {
			continue // one client is bounded by its ring, those with calls by the workers
		}
		d.lru.Remove(oldest.elem)
		delete(d.clients, oldest.addr)
		d.bytes -= oldest.bytes
	}
}

// skipRunning has next be the oldest call that has ended, if any has.
func (cl *dupClient) skipRunning() {
	for range cl.ring {
		if !cl.ring[cl.next].ended.IsZero() {
			return
		}
		cl.next = (cl.next + 1) % len(cl.ring)
	}
}
