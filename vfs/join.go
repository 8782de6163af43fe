package vfs

import (
	"context"
	"log/slog"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/ids"
	"ogw/vfs/internal/record"
	"ogw/vfs/internal/session"
)

// Gateway is a process that uses a store which others could use, too.
type Gateway = record.Gateway

// MaxTakeover is how long Join waits for a gateway that does not move, about.
const MaxTakeover = session.EvictAfter + 2*time.Second

// Join makes this process the only one that uses c, which others can reach, and
// returns c with that right: it is Exclusive, its Updates commit only while the
// right lasts, and Lost reports its end. It returns cluster.ErrInUse if a gateway
// is alive, and waits for MaxTakeover if one does not move. me says who this is.
// To close what it returns closes c.
func Join(ctx context.Context, c *cluster.Cluster, me Gateway, log *slog.Logger) (*cluster.Cluster, error) {
	l, err := session.Join(ctx, c.KV, me, log)
	if err != nil {
		return nil, err
	}
	out := *c
	out.KV, out.Exclusive, out.Live, out.Lost, out.Writable = l.Fenced(), true, l.Live, l.Gone(), l.Live
	return &out, nil
}

// Gateways are the processes that use the store, as they said themselves. A store
// that one process has to itself has none.
func (fs *FS) Gateways(ctx context.Context) (list []Gateway, err error) {
	err = fs.view(ctx, func(r cluster.Reader) (err error) {
		list, err = record.Gateways(r)
		return err
	})
	return list, fserr.Map(err)
}

// claim ties blobs to metadata, where these could come apart. Metadata from an
// earlier time than the blobs were restored: numbers that they count as free may
// name blobs, so that new ones begin far behind, and what nothing names stays
// until somebody decides (Check with repair).
func (fs *FS) claim(ctx context.Context) error {
	var known uint64
	err := fs.kv.View(ctx, func(r cluster.Reader) (err error) {
		known, err = record.Counter(r, record.CounterClaims)
		return err
	})
	if err != nil {
		return fserr.Map(err)
	}
	before, now, err := cluster.ClaimBlobs(ctx, fs.blobs, fs.super.FSID, known)
	if err != nil || now == known {
		return fserr.Map(err)
	}
	err = fs.kv.Update(cluster.Strict(ctx), func(t cluster.Txn) error {
		if before > known {
			if err := ids.Skip(t); err != nil {
				return err
			}
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
