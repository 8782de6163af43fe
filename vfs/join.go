package vfs

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"ogw/cluster"
	"ogw/cluster/pause"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/ids"
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
// MaxTakeover if one does not move. To close what it returns closes c.
//
// Beside others, the POSIX operations (files, handles, locks) are not safe: what is open,
// held or locked elsewhere is not known here. The object operations are.
func Join(ctx context.Context, c *cluster.Cluster, me Gateway, log *slog.Logger) (*cluster.Cluster, error) {
	l, err := session.Join(ctx, c.KV, me, log)
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
			list[i].Still = seen[k].Still
		}
	}
	return list, fserr.Map(err)
}

// claim ties blobs to metadata, where these could come apart. Metadata from an
// earlier time than the blobs were restored: numbers that they count as free may
// name blobs, so that new ones begin far behind, and what nothing names stays
// until somebody decides (Check with repair).
func (fs *FS) claim(ctx context.Context) error {
	known, err := fs.claims(ctx)
	if err != nil {
		return err
	}
	before, now, err := cluster.ClaimBlobs(ctx, fs.blobs, fs.super.FSID, known)
	if err != nil || now == known {
		return fserr.Map(err)
	}
	if before > known {
		if known, err = fs.awaitClaims(ctx, before); err != nil {
			return err
		}
	}
	err = fs.kv.Update(cluster.Strict(ctx), func(t cluster.Txn) error {
		if before > known {
			if err := ids.Skip(t); err != nil {
				return err
			}
		}
		stored, err := record.Counter(t, record.CounterClaims)
		if err != nil {
			return err
		}
		return record.SetCounter(t, record.CounterClaims, max(stored, now))
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

// claims is how often the metadata claimed blobs.
func (fs *FS) claims(ctx context.Context) (n uint64, err error) {
	err = fs.kv.View(ctx, func(r cluster.Reader) (err error) {
		n, err = record.Counter(r, record.CounterClaims)
		return err
	})
	return n, fserr.Map(err)
}

const (
	// claimWait is how long a gateway that starts beside this one may take from its
	// claim of the blobs to the note of that in the metadata.
	claimWait  = 5 * time.Second
	claimPause = 100 * time.Millisecond
)

// awaitClaims returns what the metadata know of claims, when they know that many: the
// last may be that of a gateway which starts beside this one.
func (fs *FS) awaitClaims(ctx context.Context, n uint64) (known uint64, err error) {
	for begun := time.Now(); ; {
		known, err = fs.claims(ctx)
		if err != nil || known >= n || fs.session.Alone() || time.Since(begun) > claimWait {
			return known, err
		}
		if err := pause.For(ctx, claimPause); err != nil {
			return 0, err
		}
	}
}
