package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"ogw/cluster"
	"ogw/cluster/coherence"
	"ogw/cluster/local"
	"ogw/cluster/metered"
	"ogw/cluster/readcache"
	"ogw/cmd/ogw/config"
	"ogw/cmd/ogw/mounts"
	"ogw/httpapi/admin"
)

// MountLog is the log of a mount in the background, in the data folder.
const MountLog = "mount.log"

// privateNames are the files that the process makes in the data folder; the engine
// sees to its own.
var privateNames = []string{CredentialsName, mounts.RecordName, mounts.LockName, MountLog, MountLog + ".1", admin.SocketName}

// engine is what stores, and what watches over it.
type engine struct {
	started time.Time
	cluster *cluster.Cluster
	store   *cluster.Cluster // cluster, measured
	audit   *auditor
	meters  *meters
	budgets budgets
}

// openEngine is the first step. What it returns is to be closed after an error too.
func openEngine(ctx context.Context, cfg *config.Config, opt *Options) (e *engine, err error) {
	e = &engine{started: time.Now()}
	if err = CheckDir(cfg.Cluster.Dir); err != nil {
		return e, err
	}
	e.budgets = fit(cfg)
	warnOfGroups(cfg, ownGroups, opt.Log)
	by := opener{version: opt.Version, budgets: e.budgets, openWait: maxOpenWait, serves: true, finds: true, log: opt.Log}
	if e.cluster, err = openCluster(ctx, cfg, by); errors.Is(err, cluster.ErrNoStore) {
		if err = mayMake(cfg, opt); err != nil {
			return e, err
		}
		by.finds = false
		e.cluster, err = openCluster(ctx, cfg, by)
	}
	if err != nil {
		return e, err
	}
	if err = local.MakePrivate(cfg.Cluster.Dir, opt.Log, privateNames...); err != nil {
		return e, err
	}
	if e.audit, err = openAudit(cfg, opt.Version, opt.Log); err != nil {
		return e, err
	}
	e.meters = newMeters(opt.Version)
	if e.store, err = metered.Wrap(e.cluster, e.meters.registry); err != nil {
		return e, err
	}
	writable := func() bool { _, why := storeState(e.cluster); return why == nil }
	err = errors.Join(e.meters.addAudit(e.audit.log), e.meters.addState(writable))
	if kept, ok := e.cluster.Blobs.(*readcache.Blobs); ok {
		err = errors.Join(err, e.meters.addReadCache(kept))
	}
	if peers, ok := e.cluster.Peers.(*coherence.Client); ok {
		err = errors.Join(err, e.meters.addPeers(peers))
	}
	return e, err
}

// mayMake returns what would have the start fail after it made a store: a folder with
// a wrong name is not to stay behind as one.
func mayMake(cfg *config.Config, opt *Options) error {
	if opt.Making != nil {
		if err := opt.Making(); err != nil {
			return err
		}
	}
	doors := operatorDoors(cfg, opt)
	for _, g := range cfg.Gateways {
		if protocols[g.Protocol] != nil {
			doors = append(doors, g)
		}
	}
	for _, g := range doors {
		l, err := listen(g, slog.New(slog.DiscardHandler))
		if err == nil {
			err = l.Close()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// close comes last. served reports whether the process had begun to serve.
func (e *engine) close(served bool) (err error) {
	if e.cluster != nil {
		err = e.cluster.Close()
	}
	if e.audit == nil {
		return err
	}
	if served {
		e.audit.process("End", "", "", nil)
	}
	return errors.Join(err, e.audit.log.Close())
}

// EngineOptions of OpenEngine.
type EngineOptions struct {
	Version string
	Log     *slog.Logger
	// Make has a store made where there is none.
	Make bool
}

// OpenEngine opens what stores, for who needs no more than that.
func OpenEngine(ctx context.Context, cfg *config.Config, o EngineOptions) (*cluster.Cluster, error) {
	return openCluster(ctx, cfg, opener{version: o.Version, budgets: fit(cfg), finds: !o.Make, log: o.Log})
}

func openCluster(ctx context.Context, c *config.Config, by opener) (e *cluster.Cluster, err error) {
	if c.Cluster.Engine == config.EngineShared {
		e, err = openShared(ctx, c, by)
	} else {
		e, err = local.Open(ctx, local.Options{
			Dir: c.Cluster.Dir, Logger: by.log, CacheBytes: int64(c.Cluster.Cache), NetworkFS: c.Cluster.NetworkFS,
			MemTableBytes: by.budgets.memTable, MustExist: by.finds,
		})
	}
	if errors.Is(err, cluster.ErrNoStore) {
		return nil, fmt.Errorf("%w; %s", err, noStore(c.Cluster.Engine))
	}
	return e, explain(err)
}

// noStore is what to do where a command finds no store.
func noStore(engine string) string {
	if engine == config.EngineShared {
		return "see cluster.store and cluster.metadata, or make a store with ogw serve"
	}
	return "mount the disk that it is on, name its folder with --dir, or make a store with ogw serve"
}

// CheckDir returns why a data folder cannot be one.
func CheckDir(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		return fmt.Errorf("data folder %s is not a folder", dir)
	}
	return nil
}

// explain adds what to do about errors of opening a store.
func explain(err error) error {
	switch {
	case errors.Is(err, cluster.ErrLocked):
		return fmt.Errorf("%w; stop it, or talk to it through the same --dir once it serves", err)
	case errors.Is(err, cluster.ErrFormat):
		return fmt.Errorf("%w; it is left as it is", err)
	case errors.Is(err, cluster.ErrMismatch):
		return fmt.Errorf("%w; nothing was changed: see cluster.metadata, cluster.objects and cluster.store", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w; run this as the user who owns the data folder", err)
	}
	return err
}

// The states of a store.
const (
	StoreWritable = "writable"
	storeReadOnly = "read-only"
	storeFailed   = "failed"
	storeAway     = "unavailable"
)

// storeState reports whether the store takes writes, and why not.
func storeState(c *cluster.Cluster) (state string, why error) {
	if c.Writable == nil {
		return StoreWritable, nil
	}
	switch err := c.Writable(); {
	case err == nil:
		return StoreWritable, nil
	case errors.Is(err, cluster.ErrFailed):
		return storeFailed, err
	case errors.Is(err, cluster.ErrReadOnly):
		return storeReadOnly, err
	case errors.Is(err, cluster.ErrUnavailable):
		return storeAway, err
	default:
		return storeFailed, err
	}
}
