package session

import (
	"context"
	"errors"
	"testing"

	"ogw/cluster"
	"ogw/cluster/mem"
)

// onlyUrgent is a store whose means for others are all in use.
type onlyUrgent struct{ cluster.KV }

var errBusy = errors.New("others are under way")

func (k onlyUrgent) View(ctx context.Context, fn func(cluster.Reader) error) error {
	if !cluster.IsUrgent(ctx) {
		return errBusy
	}
	return k.KV.View(ctx, fn)
}

func (k onlyUrgent) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	if !cluster.IsUrgent(ctx) {
		return errBusy
	}
	return k.KV.Update(ctx, fn)
}

// A gateway comes, beats, watches and leaves while its engine lets no other transactions
// run; its clients' are not urgent.
func TestLeaseUrgent(t *testing.T) {
	c := mem.New(mem.Options{})
	defer c.Close()
	kv := onlyUrgent{c.KV}
	l, err := Join(bg, kv, nil, besideMember("a"), quiet)
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Peers()) != 1 {
		t.Error("it does not see itself")
	}
	if err := errors.Join(l.once(bg), l.watchPeers(bg)); err != nil {
		t.Error(err)
	}
	if err := set(l.Fenced(), "k", "v"); !errors.Is(err, errBusy) {
		t.Errorf("a client's write: %v", err)
	}
	if err := l.Leave(); err != nil {
		t.Error(err)
	}
}
