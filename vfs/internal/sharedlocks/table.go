package sharedlocks

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"ogw/cluster"
	"ogw/vfs/lock"
)

// Config of a Table.
type Config struct {
	KV      cluster.KV // fenced: what commits, or is read, is of a gateway that is there
	Gateway uint64     // this one
	// Rules are those by which all gateways go, and who comes (record.RulesVersion).
	Rules func() uint16
	// Doubt is called when a transaction ended without an answer: settled is to be called
	// when none that began before can commit any more.
	Doubt func(settled func())
	Log   *slog.Logger
}

// Table implements lock.Locks and lock.Remotes over a store.
type Table struct {
	cfg  Config
	ctx  context.Context // of the poller
	stop context.CancelFunc
	wait sync.WaitGroup

	mu       sync.Mutex
	files    map[uint64]*file
	busy     map[uint64]*file // those that the poller is to look at
	tally    *lock.Tally
	machines machines
	journals map[string]lock.Journal
	going    []going
	closings map[uint64]time.Time // until when somebody waits for a close, by LockHolder.Closing
	polling  bool
	closed   bool
	recent   time.Time // when one began to wait, or was granted
	failing  bool      // of the poller
}

// New returns a Table. To be closed.
func New(cfg Config) *Table {
	ctx, stop := context.WithCancel(cluster.Relaxed(context.Background()))
	return &Table{cfg: cfg, ctx: ctx, stop: stop, files: make(map[uint64]*file), busy: make(map[uint64]*file),
		tally: lock.NewTally(0), machines: newMachines(), journals: make(map[string]lock.Journal), closings: make(map[uint64]time.Time)}
}

// Close ends what runs in the background. What is held ends with the gateway; kept reports
// whether a client with a Journal has some of it, which its next server is to have.
func (t *Table) Close() (kept bool) {
	t.stop()
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.wait.Wait()
	for client := range t.journals {
		kept = kept || t.tally.Of(client) > 0
	}
	return kept
}

// Count implements lock.Locks: what this process has.
func (t *Table) Count() int { return t.tally.Total() }

// ClientCount implements lock.Locks. Of remote clients see RemoteClients.
func (t *Table) ClientCount(client string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tally.Of(client)
}

// SetAccount implements lock.Locks.
func (t *Table) SetAccount(client, account string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if o := (lock.Owner{Client: client}); o.Remote() {
		t.machines.setAccount(client, account)
		return
	}
	t.tally.SetAccount(client, account)
}

// SetJournal implements lock.Locks.
func (t *Table) SetJournal(client string, j lock.Journal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if j == nil {
		delete(t.journals, client)
		return
	}
	t.journals[client] = j
}

// BeginGrace implements lock.Locks: nobody has to take back what the store has.
func (t *Table) BeginGrace() {}

// EndGrace implements lock.Locks.
func (t *Table) EndGrace() {}

// InGrace implements lock.Locks.
func (t *Table) InGrace() bool { return false }
