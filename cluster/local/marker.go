package local

import (
	"time"

	"ogw/cluster/local/internal/diskspace"
	"ogw/cluster/local/internal/metafs"
)

// markEvery is how old the mark may be while there are changes; what is
// younger is not noticed when it is missing after a crash. Close writes it.
const markEvery = 5 * time.Second

// marker keeps the mark of the rollback guard fresh.
type marker struct {
	kv    *KV
	guard *metafs.RollbackGuard
	at    uint64        // version of the newest mark
	quit  chan struct{} // nil: not started
	done  chan struct{}
}

// start writes marks until stop, and allows the last one.
func (m *marker) start(every time.Duration) {
	m.at = m.kv.visible.Load()
	m.quit, m.done = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(m.done)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if m.count() {
					m.guard.Write()
				}
			case <-m.quit:
				return
			}
		}
	}()
}

func (m *marker) stop() {
	if m.quit != nil {
		close(m.quit)
		<-m.done
	}
}

// count gives the metadata a new state; false if nothing is new, or the store
// is not well: the mark is worth no trouble.
func (m *marker) count() bool {
	kv := m.kv
	if m.quit == nil || kv.visible.Load() == m.at || kv.health.Err() != nil || !kv.space.Roomy(0, diskspace.ForLast) {
		return false
	}
	b := kv.db.NewBatch()
	key, value := m.guard.Next()
	if err := b.Set(key, value, nil); err != nil {
		b.Close()
		return false
	}
	c, _, err := kv.apply(b, applyOptions{keys: noKeys, relaxed: true})
	if err != nil {
		return false
	}
	if err := kv.awaitDisk(kv.durability.awaitLog, c.version); err != nil { // the mark is checked before the tail is replayed
		return false
	}
	m.guard.Advance()
	m.at = c.version
	return true
}
