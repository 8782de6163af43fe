package session

import (
	"context"

	"ogw/cluster"
)

// Fenced is kv for who holds the lease: an Update commits only while the fence is
// there, and nothing is answered once the lease may be over. Close leaves.
func (l *Lease) Fenced() cluster.KV { return &fenced{l.kv, l} }

type fenced struct {
	cluster.KV
	lease *Lease
}

// View implements cluster.KV.
func (k *fenced) View(ctx context.Context, fn func(cluster.Reader) error) error {
	return k.look(func() error { return k.KV.View(ctx, fn) })
}

// Peek implements cluster.KV.
func (k *fenced) Peek(ctx context.Context, fn func(cluster.Reader) error) error {
	return k.look(func() error { return k.KV.Peek(ctx, fn) })
}

// look asks for the lease before, which is cheap, and after: what fn found in
// memory besides must be as new.
func (k *fenced) look(run func() error) error {
	if err := k.lease.Live(); err != nil {
		return err
	}
	if err := run(); err != nil {
		return err
	}
	return k.lease.Live()
}

// Update implements cluster.KV. The first attempt expects the fence, which costs
// no round trip; later ones look, since it may be why the first one failed.
func (k *fenced) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	if err := k.lease.Live(); err != nil {
		return err
	}
	again := false
	return k.KV.Update(ctx, func(t cluster.Txn) error {
		x, can := t.(cluster.Expecter)
		var err error
		if can && !again {
			err = x.Expect(k.lease.key, k.lease.value)
		} else {
			err = k.lease.read(t)
		}
		if err != nil {
			return err
		}
		again = true
		return fn(t)
	})
}

// Close implements cluster.KV.
func (k *fenced) Close() error {
	left := k.lease.Leave()
	if err := k.KV.Close(); err != nil {
		return err
	}
	return left
}
