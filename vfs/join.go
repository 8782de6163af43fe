package vfs

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"ogw/cluster"
	"ogw/cluster/pause"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/session"
)

// Gateway is a process that uses a store which others could use, too.
type Gateway = record.Gateway

// Peer is a gateway, as another one sees it.
type Peer = session.Peer

// MaxTakeover is how long Join waits for a gateway that does not move, about.
const MaxTakeover = session.EvictAfter + 2*time.Second

// BeatEvery is the time between two beats of a gateway.
const BeatEvery = session.BeatEvery

// Join makes this process one that uses c, which others can reach, and returns c with
// that right: its Updates commit only while the right lasts, and Lost reports its end.
// me says who this is, and whether it uses the store beside others that say so, too;
// else it is the only one, and what Join returns is Exclusive. It returns
// cluster.ErrInUse if a gateway is alive that it cannot be beside, and waits for
// MaxTakeover if one does not move, unless that has ended (Gateway.Ended). To close what it
// returns closes c.
//
// Beside others, what is acknowledged as stored is seen by all with their next operation,
// and what is open or held (Holder) anywhere outlives its name. What is locked (Locks) is
// locked for all. Who restores what a process before had (Config.Restore) says so
// (Gateway.Restores).
func Join(ctx context.Context, c *cluster.Cluster, me Gateway, log *slog.Logger) (*cluster.Cluster, error) {
	l, err := session.Join(ctx, c.KV, c.Peers, me, log)
	if err != nil {
		return nil, err
	}
	out := *c
	out.KV, out.Exclusive, out.Live, out.Lost, out.Writable = l.Fenced(), !me.Beside, l.Live, l.Gone(), l.Live
	if me.Beside {
		out.Lease = l
	}
	return &out, nil
}

// IsStore reports whether kv holds a store, of any version. Open makes one where there is
// none.
func IsStore(ctx context.Context, kv cluster.KV) (there bool, err error) {
	err = kv.View(ctx, func(r cluster.Reader) error {
		b, err := r.Get(record.SuperKey())
		there = b != nil
		return err
	})
	return there, fserr.Map(err)
}

// Gateways are the processes that use the store, as they said themselves, and, where
// several do, for how long this one has seen the beat of each stand still. The
// embedded engine has none.
func (fs *FS) Gateways(ctx context.Context) (list []Peer, err error) {
	err = fs.view(ctx, func(r cluster.Reader) error {
		all, err := record.Gateways(r)
		list = make([]Peer, len(all))
		for i, g := range all {
			list[i].Gateway = g
		}
		return err
	})
	seen := fs.session.Peers()
	for i := range list {
		if k := slices.IndexFunc(seen, func(p Peer) bool { return p.ID == list[i].ID }); k >= 0 {
			list[i].Still, list[i].Told = seen[k].Still, seen[k].Told
		}
	}
	return list, fserr.Map(err)
}

// claim ties blobs to metadata, where these could come apart. Metadata from an
// earlier time than the blobs were restored: numbers that they count as free may
// name blobs, so that new ones begin far behind, and what nothing names stays
// until somebody decides (Check with repair). Gateways that start at the same time do it
// one after another.
func (fs *FS) claim(ctx context.Context) error {
	known, err := fs.claimTurn(ctx)
	if err != nil {
		return fserr.Map(err)
	}
	before, now, err := cluster.ClaimBlobs(ctx, fs.blobs, fs.super.FSID, known)
	if err != nil {
		return fserr.Map(err)
	}
	err = fs.kv.Update(cluster.Strict(ctx), func(t cluster.Txn) error {
		if before > known {
			if err := record.SkipNumbers(t); err != nil {
				return err
			}
		}
		if !fs.session.Alone() {
			if err := t.Delete(record.CounterKey(record.CounterClaimer)); err != nil {
				return err
			}
		}
		if now == known {
			return nil
		}
		return record.SetCounter(t, record.CounterClaims, now)
	})
	switch {
	case err != nil:
		return fserr.Map(err)
	case before > known:
		fs.log.Warn("the metadata are older than the blobs, as after a restore, or a start was cut short: "+
			"blobs that nothing names stay until ogw check --repair", "metadata", known, "blobs", before)
	case before < known:
		fs.log.Error("the blobs are older than the metadata: files may have lost bytes; ogw check --data tells", "metadata", known, "blobs", before)
	}
	return nil
}

// claimPause is between two looks whether another gateway has claimed.
const claimPause = 100 * time.Millisecond

// claimTurn returns how often the metadata claimed blobs. Beside others it waits until
// none of those that are there is about to, and notes that this one is.
func (fs *FS) claimTurn(ctx context.Context) (known uint64, err error) {
	for {
		mine := false
		err = fs.kv.Update(cluster.Strict(ctx), func(t cluster.Txn) error {
			mine, known, err = fs.takeClaimTurn(t)
			return err
		})
		if err != nil || mine {
			return known, err
		}
		if err := pause.For(ctx, claimPause); err != nil {
			return 0, err
		}
	}
}

func (fs *FS) takeClaimTurn(t cluster.Txn) (mine bool, known uint64, err error) {
	if known, err = record.Counter(t, record.CounterClaims); err != nil || fs.session.Alone() {
		return true, known, err
	}
	by, err := record.Counter(t, record.CounterClaimer)
	if err != nil {
		return false, 0, err
	}
	if by != 0 {
		if gone, err := fs.session.Gone(t, by); err != nil || !gone {
			return false, 0, err
		}
	}
	return true, known, record.SetCounter(t, record.CounterClaimer, fs.session.ID())
}
