package clustertest

import (
	"fmt"
	"testing"

	"ogw/cluster"
)

// testErase: pairs stay, within the range and beside it, and writers go on.
func testErase(t *testing.T, kv cluster.KV) {
	for round := range 3 {
		for _, key := range []string{"a", "k1", "k2", "z"} {
			set(t, kv, pair{key, fmt.Sprint(key, round)})
		}
		set(t, kv, pair{"k3", "gone"})
		update(t, kv, func(txn cluster.Txn) error { return txn.Delete([]byte("k3")) })
		if err := kv.Erase(ctx, cluster.KeyRange{Start: []byte("k"), End: []byte("l")}); err != nil {
			t.Fatal(err)
		}
		view(t, kv, func(r cluster.Reader) error {
			for _, key := range []string{"a", "k1", "k2", "z"} {
				if v, err := r.Get([]byte(key)); err != nil || string(v) != fmt.Sprint(key, round) {
					t.Errorf("%s: %q %v", key, v, err)
				}
			}
			if v, err := r.Get([]byte("k3")); v != nil || err != nil {
				t.Errorf("k3: %q %v", v, err)
			}
			return nil
		})
	}
}
