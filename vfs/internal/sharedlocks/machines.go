package sharedlocks

import (
	"maps"
	"time"

	"ogw/vfs/lock"
)

const (
	// learnAfter is how much this gateway lends a machine before it counts anew what all
	// gateways have lent it: by so much may each exceed the machine's part.
	learnAfter = 16 << 10
	// learnEvery is between two counts for a machine that has its part.
	learnEvery = 5 * time.Second
	// maxKnown machines are remembered, but for those that have locks.
	maxKnown = 4096
)

// machines counts the locks of remote clients by their machines (lock.MachineOf): what the
// store has when one is met, then what changes here, and anew from time to time. Its user
// serializes the calls.
type machines struct {
	known    map[string]*machine
	tally    *lock.Tally
	accounts map[string]*accounted // by machine
	after    int                   // learnAfter, but in tests
}

// accounted is a machine that shares its part, and its clients for which it does.
type accounted struct {
	account string
	clients map[string]struct{}
}

type machine struct {
	learned time.Time
	grants  int // since then, of this gateway
}

func newMachines() machines {
	return machines{known: make(map[string]*machine), tally: lock.NewTally(0), accounts: make(map[string]*accounted), after: learnAfter}
}

// full reports whether a machine may have no more; due, whether that is to be learned anew.
func (m *machines) full(name string) (full, due bool) {
	x, full := m.known[name], m.tally.Full(name, 2)
	return full, x == nil || x.grants >= m.after || full && time.Since(x.learned) >= learnEvery
}

// learn takes what the store has of a machine.
func (m *machines) learn(name string, total int) {
	if len(m.known) >= maxKnown {
		maps.DeleteFunc(m.known, func(name string, _ *machine) bool { return m.tally.Of(name) == 0 })
	}
	m.known[name] = &machine{learned: time.Now()}
	m.tally.Add(name, total-m.tally.Of(name))
}

// count takes what a transaction changed, by client.
func (m *machines) count(before, now map[string]int) {
	for client, n := range now {
		m.add(client, n-before[client])
	}
	for client, n := range before {
		if now[client] == 0 {
			m.add(client, -n)
		}
	}
}

func (m *machines) add(client string, n int) {
	name := lock.MachineOf(client)
	if x := m.known[name]; x != nil && n != 0 {
		x.grants += max(n, 0)
		m.tally.Add(name, max(n, -m.tally.Of(name)))
	}
}

// setAccount has a client's machine share one part with an account, for as long as any of its
// clients does ("": no more).
func (m *machines) setAccount(client, account string) {
	name := lock.MachineOf(client)
	c := m.accounts[name]
	if account == "" {
		if c != nil {
			if delete(c.clients, client); len(c.clients) > 0 {
				return
			}
			delete(m.accounts, name)
		}
		m.tally.Add(name, -m.tally.Of(name)) // as of the account of before
		delete(m.known, name)
		m.tally.SetAccount(name, "")
		return
	}
	if c == nil {
		c = &accounted{clients: make(map[string]struct{})}
		m.accounts[name] = c
	}
	c.clients[client] = struct{}{}
	if c.account == account {
		return
	}
	c.account = account
	n := m.tally.Of(name)
	m.tally.Add(name, -n)
	m.tally.SetAccount(name, account)
	m.tally.Add(name, n)
}
