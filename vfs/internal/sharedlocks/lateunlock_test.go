package sharedlocks

import (
	"errors"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/vfs/lock"
)

// TestUnlockBeforeLateLock: a lock that is granted after its request had no answer, and after the
// owner unlocked, is given up, be it of a range or of all.
func TestUnlockBeforeLateLock(t *testing.T) {
	for name, end := range map[string]uint64{"range": 10, "all": lock.EOF} {
		t.Run(name, func(t *testing.T) {
			onStore(t, func(t *testing.T, s *store) {
				a, b := s.open(), s.open()
				kv := &slow{KV: a.cfg.KV, release: make(chan struct{}), ended: make(chan error, 1)}
				a.cfg.KV = kv
				p := owner(a, "p")
				kv.next.Store(true)
				if err := a.TryLock(bg, 1, lock.Range, rng(p, 0, 10)); !errors.Is(err, cluster.ErrUnavailable) {
					t.Fatalf("a lock without an answer: %v", err)
				}
				if err := a.Unlock(bg, 1, lock.Range, rng(p, 0, end)); err != nil {
					t.Fatal(err)
				}
				close(kv.release)
				<-kv.ended
				a.settleDoubts()
				time.Sleep(time.Minute)
				if err := b.TryLock(bg, 1, lock.Range, rng(owner(b, "q"), 0, 10)); err != nil {
					t.Errorf("after it was unlocked: %v", err)
				}
			})
		})
	}
}
