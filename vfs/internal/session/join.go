package session

import (
	"context"
	"log/slog"

	"ogw/cluster"
	"ogw/vfs/internal/record"
)

// Join takes the lease. A gateway that wants the store alone waits until nobody else
// uses it, one beside others until nobody has it alone. It returns cluster.ErrInUse,
// with who it is, if such a gateway is alive.
func Join(ctx context.Context, kv cluster.KV, me record.Gateway, log *slog.Logger) (*Lease, error) {
	l, err := newLease(kv, me, log)
	if err != nil {
		return nil, err
	}
	if err := l.take(cluster.Urgent(ctx)); err != nil {
		return nil, err
	}
	if me.Beside { // else the next look shows it
		if err := l.watchPeers(ctx); err != nil {
			log.Warn("the other gateways cannot be seen, it is tried again", "err", err)
		}
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = stop
	l.beat.Go(func() { l.run(run) })
	return l, nil
}
