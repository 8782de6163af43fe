package etcd

import (
	"context"
	"errors"
	"testing"

	"ogw/cluster"
)

// Urgent commits do not wait for the turn of others.
func TestUrgentTurn(t *testing.T) {
	p := newSlots(nil, "")
	for range maxSlots {
		if _, err := p.enter(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := p.enter(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("one commit too many: %v", err)
	}
	leave, err := p.enter(cluster.Urgent(ended))
	if err != nil {
		t.Fatalf("an urgent one: %v", err)
	}
	if leave(); len(p.busy) != maxSlots {
		t.Errorf("%d turns are taken", len(p.busy))
	}
}
