package coherence

import (
	"testing"
	"time"

	"ogw/cluster"
)

// One client sees that there are too many before another one does: it must go on telling that one, which
// still answers from memory.
func TestCrowdedHereFirst(t *testing.T) {
	t.Parallel()
	g, clients, ways := twoByWays(t)
	a, b := clients[0], clients[1] // a subscribes at b by ways[1]
	key := []byte("key")
	since := a.Trust().Now()
	eventually(t, "holds", func() bool { return a.Trust().Holds(LineOf(key), since) })
	time.Sleep(renewEvery)
	// 64 others are there, with smaller numbers than a has; b looks.
	var list []cluster.Peer
	for i := range maxPeers {
		list = append(list, cluster.Peer{ID: uint64(1000 + i), Address: "127.0.0.1:1", Key: []byte{byte(i)}})
	}
	g.mu.Lock()
	g.there = append(list, g.there...)
	g.mu.Unlock()
	ways[1].set(true) // nothing reaches a in time
	g.look(b)
	change, err := b.Announce(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if a.Trust().Holds(LineOf(key), since) {
		t.Error("it answers from memory what is being changed")
	}
	change.Done()
	ways[1].set(false)
}
