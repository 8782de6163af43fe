package lock

import "sync/atomic"

// DefaultMaxLocks bounds held ranges and waiters of a process together: at
// about 150 bytes each, some 150 MB at the worst.
const DefaultMaxLocks = 1 << 20

// DefaultMaxClientLocks bounds those of one client, so that it leaves some to
// the others. Databases hold a few per file, and mail servers one.
const DefaultMaxClientLocks = 1 << 18

// minClientLocks are what every client may have as long as there are any: with
// more, a client has no more than is still free, so that those who come later
// find something, however many have their part.
const minClientLocks = 1 << 10

// Tally counts held ranges and waiters of a process, and bounds those of each client.
// Its user serializes the calls, but for Total.
type Tally struct {
	max       int
	maxClient int
	total     atomic.Int64
	clients   map[string]int    // by Owner.Client
	account   map[string]string // of clients that have one part together
	parts     map[string]int    // by account, or else by client
}

// NewTally returns an empty one. max bounds all; 0 means DefaultMaxLocks.
func NewTally(max int) *Tally {
	if max <= 0 {
		max = DefaultMaxLocks
	}
	return &Tally{max: max, maxClient: min(max, DefaultMaxClientLocks),
		clients: make(map[string]int), account: make(map[string]string), parts: make(map[string]int)}
}

// Total returns the number of all.
func (t *Tally) Total() int { return int(t.total.Load()) }

// Of returns how many are a client's.
func (t *Tally) Of(client string) int { return t.clients[client] }

// SetAccount makes a client share one part with all others of an account ("": none).
func (t *Tally) SetAccount(client, account string) {
	if account == "" {
		delete(t.account, client)
	} else {
		t.account[client] = account
	}
}

func (t *Tally) partOf(client string) string {
	if account, ok := t.account[client]; ok {
		return account
	}
	return client
}

// Add notes n more of a client.
func (t *Tally) Add(client string, n int) {
	t.total.Add(int64(n))
	if t.clients[client] += n; t.clients[client] == 0 {
		delete(t.clients, client)
	}
	part := t.partOf(client)
	if t.parts[part] += n; t.parts[part] == 0 {
		delete(t.parts, part)
	}
}

// Full reports whether a client may not have n more.
func (t *Tally) Full(client string, n int) bool {
	free, part := t.max-t.Total(), t.parts[t.partOf(client)]+n
	return n > free || part > min(t.maxClient, max(free, minClientLocks))
}
