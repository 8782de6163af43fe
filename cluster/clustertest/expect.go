package clustertest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"ogw/cluster"
)

// testExpectBaton: counters of whose turn it is, which is expected and not
// read. Who passes the turn on notes how far the counter came, and it must stay
// there.
func testExpectBaton(t *testing.T, a, b cluster.KV) {
	const turns, workers, least, most = 12, 4, 3, 10
	text := func(i uint64) []byte { return binary.BigEndian.AppendUint64(nil, i) }
	count := func(turn uint64) []byte { return fmt.Appendf(nil, "count%d", turn) }
	update(t, a, func(txn cluster.Txn) error { return txn.Set([]byte("turn"), text(0)) })
	// step counts for a turn, and returns errRefused when that is over.
	step := func(kv cluster.KV, turn uint64) error {
		return tried(kv, func(txn cluster.Txn) error {
			if err := txn.Expect([]byte("turn"), text(turn)); err != nil {
				return err
			}
			v, err := txn.Get(count(turn))
			if err != nil {
				return err
			}
			return txn.Set(count(turn), text(number(v)+1))
		})
	}
	var wg sync.WaitGroup
	var over atomic.Bool
	for w := range workers {
		kv := [2]cluster.KV{a, b}[w%2]
		wg.Go(func() {
			for !over.Load() && !t.Failed() {
				turn, err := number(get(t, kv, "turn")), error(nil)
				for i := 0; i < most && err == nil; i++ {
					err = step(kv, turn)
				}
				if err != nil && !errors.Is(err, errRefused) {
					t.Errorf("turn %d: %v", turn, err)
				}
			}
		})
	}
	ended := make([]uint64, turns)
	for turn := range uint64(turns) {
		kv := [2]cluster.KV{a, b}[turn%2]
		for number(get(t, kv, string(count(turn)))) < least && !t.Failed() {
		}
		update(t, kv, func(txn cluster.Txn) error {
			v, err := txn.Get(count(turn))
			ended[turn] = number(v)
			return errors.Join(err, txn.Set([]byte("turn"), text(turn+1)))
		})
	}
	over.Store(true)
	wg.Wait()
	for turn, n := range ended {
		if now := number(get(t, a, string(count(uint64(turn))))); now != n {
			t.Errorf("turn %d ended at %d, and came to %d after it", turn, n, now)
		}
	}
}
