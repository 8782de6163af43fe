package server

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"ogw/cluster"
	"ogw/cmd/ogw/config"
	"ogw/httpapi/admin"
	"ogw/vfs"
)

// Local is a store that no process serves, opened for one command.
type Local struct {
	cluster *cluster.Cluster
	fs      *vfs.FS
	audit   *auditor
	api     *admin.Server
}

// LocalOptions of OpenLocal.
type LocalOptions struct {
	Version string
	Log     *slog.Logger
	// MovedTo is the place of another store, "" if none: this one is opened even if it
	// was moved there.
	MovedTo string
}

// OpenLocal opens the store of a data folder, or of servers of others, which is there: a
// command makes none in the folder of a disk that is not mounted, or under a wrong name. Nothing listens, and nothing is done
// in the background.
func OpenLocal(ctx context.Context, cfg *config.Config, o LocalOptions) (*Local, error) {
	l := &Local{}
	if err := l.open(ctx, cfg, &o); err != nil {
		return nil, errors.Join(err, l.Close(ctx))
	}
	return l, nil
}

func (l *Local) open(ctx context.Context, cfg *config.Config, o *LocalOptions) error {
	b := fit(cfg)
	vc, err := vfsConfig(cfg, o.Log)
	if err != nil {
		return err
	}
	if l.cluster, err = openCluster(ctx, cfg, opener{version: o.Version, budgets: b, finds: true, log: o.Log}); err != nil {
		return err
	}
	vc.NoBackground, vc.MovedTo = true, o.MovedTo
	if l.fs, err = vfs.Open(ctx, l.cluster, vc); err != nil {
		return explain(err)
	}
	openCredentials(cfg, vc, l.fs, o.Log)
	tellSealing(l.fs.SealState(), o.Log)
	if l.audit, err = openAudit(cfg, o.Version, o.Log); err != nil {
		return err
	}
	l.api = admin.New(admin.Config{
		Exports: newExportBook(l.fs, o.Log, notServed(cfg)),
		FS:      l.fs, Logger: slog.New(slog.DiscardHandler), Version: o.Version,
		Dir: cfg.Cluster.Dir, Engine: cfg.Cluster.Place(), PID: os.Getpid(), Started: time.Now(),
		Domains: cfg.Domains(),
		Done:    l.audit.http("admin", "", apiCode),
	})
	return nil
}

// notServed are the configured NFS gateways, which are not of this process.
func notServed(cfg *config.Config) (list []exportGateway) {
	for _, g := range cfg.Gateways {
		if g.Protocol == "nfs" {
			list = append(list, exportGateway{config: g})
		}
	}
	return list
}

// API returns the admin API over the store.
func (l *Local) API() *admin.Server { return l.api }

// Alone reports why other processes may have used the store since it was opened; nil: none
// can have.
func (l *Local) Alone() error {
	switch {
	case !l.cluster.Exclusive:
		return errBeside
	case l.cluster.Live == nil:
		return nil
	}
	return l.cluster.Live()
}

// MarkMoved makes it a store that was moved to a place: nobody opens it any more, but with
// LocalOptions.MovedTo.
func (l *Local) MarkMoved(ctx context.Context, place string) error { return l.fs.MarkMoved(ctx, place) }

var errBeside = errors.New("it was opened beside other processes")

// Close closes the store.
func (l *Local) Close(ctx context.Context) (err error) {
	if l.fs != nil {
		err = l.fs.Close(ctx)
	}
	if l.cluster != nil {
		err = errors.Join(err, l.cluster.Close())
	}
	if l.audit != nil {
		err = errors.Join(err, l.audit.log.Close())
	}
	return err
}
