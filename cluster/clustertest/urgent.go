package clustertest

import (
	"context"
	"sync"
	"testing"
	"time"

	"ogw/cluster"
)

// urgentWait is far above what an urgent call takes, and bounds what it waits for others
// where it should not.
const urgentWait = 30 * time.Second

// TestUrgent has crowd transactions under way at once, all that kv lets run, and urgent
// ones beside them.
func TestUrgent(t *testing.T, kv cluster.KV, crowd int) {
	set(t, kv, pair{"a", "1"})
	var running sync.WaitGroup
	reached, goOn := make(chan struct{}), make(chan struct{})
	read := func(r cluster.Reader) error {
		_, err := r.Get([]byte("a"))
		select {
		case reached <- struct{}{}:
			<-goOn
		case <-goOn:
		}
		return err
	}
	for range crowd { // views: an Update may read what is remembered, and hold nothing
		running.Go(func() {
			if err := kv.View(ctx, read); err != nil {
				t.Error(err)
			}
		})
	}
	for range crowd {
		<-reached
	}
	urgent, cancel := context.WithTimeout(cluster.Urgent(ctx), urgentWait)
	defer cancel()
	get := func(r cluster.Reader) error {
		_, err := r.Get([]byte("a"))
		return err
	}
	for name, err := range map[string]error{
		"Update": kv.Update(urgent, func(txn cluster.Txn) error { return txn.Set([]byte("b"), []byte("2")) }),
		"View":   kv.View(urgent, get),
		"Peek":   kv.Peek(urgent, get),
	} {
		if err != nil {
			t.Errorf("urgent %s: %v", name, err)
		}
	}
	close(goOn)
	running.Wait()
}
