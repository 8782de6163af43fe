package sharedlocks

import (
	"context"
	"time"

	"ogw/vfs/lock"
)

const (
	// learnAfter is how much this gateway lends a machine before it counts anew what all
	// gateways have lent it: by so much may each exceed the machine's part.
	learnAfter = 16 << 10
	// learnEvery is between two counts for a machine that has its part.
	learnEvery = 5 * time.Second
)

// machine is what is known of the locks of a remote client's machine; how many they are is
// in Table.remote.
type machine struct {
	learned time.Time
	grants  int // since then, of this gateway
}

// machineFull reports whether a client's machine may have no more. It counts what the store
// has when it meets the machine, then what changes here, and again from time to time.
func (t *Table) machineFull(ctx context.Context, client string) (bool, error) {
	name := lock.MachineOf(client)
	t.mu.Lock()
	m, full := t.machines[name], t.remote.Full(name, 2)
	t.mu.Unlock()
	if m != nil && m.grants < t.learnAfter && (!full || time.Since(m.learned) < learnEvery) {
		return full, nil
	}
	total := 0
	if err := t.lockers(ctx, name, func(_ string, _ uint64, n int) { total += n }); err != nil {
		return false, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.machines[name] = &machine{learned: time.Now()}
	t.remote.Add(name, total-t.remote.Of(name))
	return t.remote.Full(name, 2), nil
}

// countRemote counts what a transaction changed. Under mu.
func (t *Table) countRemote(s *state) {
	now := s.Lockers()
	add := func(client string, n int) {
		name := lock.MachineOf(client)
		if m := t.machines[name]; m != nil && n != 0 {
			m.grants += max(n, 0)
			t.remote.Add(name, max(n, -t.remote.Of(name)))
		}
	}
	for client, n := range now {
		add(client, n-s.lockers[client])
	}
	for client, n := range s.lockers {
		if now[client] == 0 {
			add(client, -n)
		}
	}
}

// setMachine has a machine share one part with an account, or be forgotten. Under mu.
func (t *Table) setMachine(client, account string) {
	name := lock.MachineOf(client)
	if account == "" {
		t.remote.Add(name, -t.remote.Of(name))
		delete(t.machines, name)
	}
	t.remote.SetAccount(name, account)
}
