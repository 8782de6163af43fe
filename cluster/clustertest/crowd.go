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

// testOnDuty: of two who are on duty one may leave, if the other one stays. Many try at the
// same time, for few pairs: an engine that commits what comes together must not take each of
// the two for granted. Some read the other one, some expect it.
func testOnDuty(t *testing.T, a, b cluster.KV) {
	const pairs, workers, each = 3, 24, 20
	on := []byte{1}
	key := func(pair, who int) []byte { return fmt.Appendf(nil, "duty/%d/%d", pair, who) }
	update(t, a, func(txn cluster.Txn) error {
		for i := range 2 * pairs {
			if err := txn.Set(key(i/2, i%2), on); err != nil {
				return err
			}
		}
		return nil
	})
	var left atomic.Int64
	var wg sync.WaitGroup
	for w := range workers {
		me, other := key(w%pairs, w/pairs%2), key(w%pairs, 1-w/pairs%2)
		kv := [2]cluster.KV{a, b}[w/(2*pairs)%2]
		expects := w%4 == 0
		wg.Go(func() {
			for range each {
				leaves, runs := false, 0
				err := kv.Update(ctx, func(txn cluster.Txn) error {
					leaves = true
					if runs++; expects && runs > refusedRuns {
						return errRefused
					}
					if expects {
						return errors.Join(txn.Expect(other, on), txn.Delete(me))
					}
					both, err := txn.GetMany([][]byte{me, other})
					if leaves = err == nil && both[0] != nil && both[1] != nil; !leaves {
						return errors.Join(err, txn.Set(me, on))
					}
					return txn.Delete(me)
				})
				if err != nil && !errors.Is(err, errRefused) {
					t.Errorf("on duty: %v", err)
				}
				if err == nil && leaves {
					left.Add(1)
				}
				err = kv.View(ctx, func(r cluster.Reader) error {
					both, err := r.GetMany([][]byte{me, other})
					if err == nil && both[0] == nil && both[1] == nil {
						err = errors.New("nobody is on duty")
					}
					return err
				})
				if err != nil {
					t.Error(err)
					return
				}
				if expects && leaves { // who expects does not look whether it is on duty
					update(t, kv, func(txn cluster.Txn) error { return txn.Set(me, on) })
				}
			}
		})
	}
	wg.Wait()
	if left.Load() == 0 {
		t.Error("nobody ever left")
	}
}
