package clustertest

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"testing"

	"ogw/cluster"
)

// testCrowd: among many that count by one pair as fast as they can, a transaction that
// reads more than they do, pair by pair, gets its turn.
func testCrowd(t *testing.T, a, b cluster.KV) {
	const workers, turns, others = 8, 20, 4
	count := func(txn cluster.Txn, key string) error {
		v, err := txn.Get([]byte(key))
		if err != nil {
			return err
		}
		return txn.Set([]byte(key), binary.BigEndian.AppendUint64(nil, number(v)+1))
	}
	var wg sync.WaitGroup
	var over atomic.Bool
	defer func() {
		over.Store(true)
		wg.Wait()
	}()
	for w := range workers {
		kv := [2]cluster.KV{a, b}[w%2]
		wg.Go(func() {
			for !over.Load() {
				if err := kv.Update(ctx, func(txn cluster.Txn) error { return count(txn, "hot") }); err != nil {
					t.Errorf("one of the crowd: %v", err)
				}
			}
		})
	}
	most := 0
	for range turns {
		runs := 0
		update(t, a, func(txn cluster.Txn) error {
			runs++
			if err := count(txn, "hot"); err != nil {
				return err
			}
			for i := range others {
				if err := count(txn, string(rune('a'+i))); err != nil {
					return err
				}
			}
			return nil
		})
		most = max(most, runs)
	}
	t.Logf("at most %d runs", most)
}
