package session

import (
	"context"
	"errors"

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
// no round trip; later ones look, since it may be why the first one failed. One
// that wrote nothing compared nothing: it is a look as others.
func (k *fenced) Update(ctx context.Context, fn func(cluster.Txn) error) error {
	return k.look(func() error {
		again := false
		return k.KV.Update(ctx, func(t cluster.Txn) error {
			guard := k.lease.expect
			if again {
				guard = k.lease.read
			}
			again = true
			if err := guard(t); err != nil {
				return err
			}
			return fn(t)
		})
	})
}

// Limits implements cluster.KV: the fence is one operation of each Update.
func (k *fenced) Limits() cluster.Limits {
	limits := k.KV.Limits()
	if limits.Ops > 0 {
		limits.Ops--
	}
	return limits
}

// Close implements cluster.KV.
func (k *fenced) Close() error {
	left := k.lease.Leave()
	return errors.Join(k.KV.Close(), left, k.lease.tells.Close())
}
