package session

import (
	"bytes"
	"context"
	"errors"
	"log/slog"

	"ogw/cluster"
	"ogw/vfs/internal/record"
)

// Join takes the lease. A gateway that wants the store alone waits until nobody else
// uses it, one beside others until nobody has it alone. It returns cluster.ErrInUse,
// with who it is, if such a gateway is alive. By tells, gateways beside one another tell each
// other what they change; nil: this one tells nobody, so that none answers from memory.
func Join(ctx context.Context, kv cluster.KV, tells cluster.Peers, me record.Gateway, log *slog.Logger) (*Lease, error) {
	l, err := newLease(kv, tells, me, log)
	if err != nil {
		return nil, err
	}
	l.tells.Join(l.me.ID, l.glance, l.reads.doubt)
	if err := l.take(cluster.Urgent(ctx)); err != nil {
		return nil, err
	}
	if err := l.tidy(cluster.Urgent(ctx)); err != nil {
		log.Warn("what gateways left that are gone is not removed", "err", err)
	}
	if me.Beside { // else the next look shows it
		if err := l.watchPeers(ctx); err != nil {
			log.Warn("the other gateways cannot be seen, it is tried again", "err", err)
		}
		l.warnOfLoopback()
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = stop
	l.beat.Go(func() { l.run(run) })
	if err := l.introduce(ctx); err != nil {
		return nil, errors.Join(err, l.Leave())
	}
	return l, nil
}

// tidy removes beats and reads without a fence, which nobody goes by: of a gateway that was
// put out by one which did not know of all of them. None comes back, since each start
// has an ID of its own.
func (l *Lease) tidy(ctx context.Context) error {
	var stray [][]byte
	if err := l.kv.View(ctx, func(r cluster.Reader) (err error) {
		stray, err = strays(r)
		return err
	}); err != nil || len(stray) == 0 {
		return err
	}
	return l.kv.Update(ctx, func(t cluster.Txn) error {
		for _, key := range stray {
			if err := t.Delete(key); err != nil {
				return err
			}
		}
		return nil
	})
}

// maxStrays bounds what one start removes.
const maxStrays = 32

func strays(r cluster.Reader) (keys [][]byte, err error) {
	all, err := record.Gateways(r)
	if err != nil {
		return nil, err
	}
	there := make(map[uint64]bool, len(all))
	for i := range all {
		there[all[i].ID] = true
	}
	for _, table := range []byte{record.TabBeat, record.TabRead} {
		from, to := record.Table(table)
		if err := r.Scan(from, to, cluster.ScanOptions{KeysOnly: true}, func(k, _ []byte) error {
			if len(keys) < maxStrays && !there[record.GatewayOf(k)] {
				keys = append(keys, bytes.Clone(k))
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return keys, nil
}
