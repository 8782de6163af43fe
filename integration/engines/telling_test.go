package engines

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"ogw/cluster"
	"ogw/cluster/coherence"
	"ogw/integration/testenv"
)

// telling returns two clients of a store that tell each other what they are about to change.
func telling(t *testing.T) (pair [2]*coherence.Client) {
	t.Helper()
	var peers []cluster.Peer
	for i := range pair {
		c, err := coherence.New(coherence.Options{Listen: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		address, key := c.Me()
		pair[i], peers = c, append(peers, cluster.Peer{ID: uint64(i) + 1, Address: address, Key: key})
	}
	look := func(ctx context.Context, c *coherence.Client) error {
		return c.Look(ctx, func(context.Context) ([]cluster.Peer, bool, error) { return peers, true, nil })
	}
	for i, c := range pair { // all, before one connects to another
		c.Join(peers[i].ID, func(ctx context.Context) error { return look(ctx, c) }, func(func()) {})
	}
	stop := make(chan struct{})
	var looks sync.WaitGroup
	t.Cleanup(func() { close(stop); looks.Wait() })
	for _, c := range pair {
		looks.Go(func() {
			for {
				_ = look(t.Context(), c)
				select {
				case <-stop:
					return
				case <-time.After(time.Second):
				}
			}
		})
		if err := c.Introduce(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, func() bool { return pair[0].Told() && pair[1].Told() })
	return pair
}

// told reports whether a gateway is told by all others what they change.
func told(s *testenv.Server) bool {
	out, err := s.TryOGW("status", "--json")
	return err == nil && strings.Contains(out, `"told": true`)
}
