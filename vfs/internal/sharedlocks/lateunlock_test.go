package sharedlocks

import (
	"context"
	"errors"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/vfs/lock"
)

// lateKV has one transaction commit after its caller gave it up.
type lateKV struct {
	cluster.KV
	lose    bool
	release chan struct{}
	done    chan error
}

func (k *lateKV) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	if !k.lose {
		return k.KV.Update(ctx, fn)
	}
	k.lose = false
	read := make(chan struct{})
	go func() {
		runs := 0
		k.done <- k.KV.Update(bg, func(x cluster.Txn) error {
			if runs++; runs > 1 {
				return errors.New("a conflict")
			}
			err := fn(x)
			close(read)
			<-k.release
			return err
		})
	}()
	<-read
	return errAway
}

// TestUnlockBeforeLateLock: a lock that is granted after its request had no answer, and after the
// owner unlocked, is given up, be it of a range or of all.
func TestUnlockBeforeLateLock(t *testing.T) {
	for name, end := range map[string]uint64{"range": 10, "all": lock.EOF} {
		t.Run(name, func(t *testing.T) {
			onStore(t, func(t *testing.T, s *store) {
				a, b := s.open(), s.open()
				kv := &lateKV{KV: a.Table.cfg.KV, release: make(chan struct{}), done: make(chan error, 1)}
				a.Table.cfg.KV = kv
				p := owner(a, "p")
				kv.lose = true
				if err := a.TryLock(bg, 1, lock.Range, rng(p, 0, 10)); !errors.Is(err, cluster.ErrUnavailable) {
					t.Fatalf("a lock without an answer: %v", err)
				}
				if err := a.Unlock(bg, 1, lock.Range, rng(p, 0, end)); err != nil {
					t.Fatal(err)
				}
				close(kv.release)
				<-kv.done
				a.settleDoubts()
				time.Sleep(time.Minute)
				if err := b.TryLock(bg, 1, lock.Range, rng(owner(b, "q"), 0, 10)); err != nil {
					t.Errorf("after it was unlocked: %v", err)
				}
			})
		})
	}
}
