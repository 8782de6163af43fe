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

// OpenLocal opens the store of a data folder; nothing listens, and nothing is done
// in the background.
func OpenLocal(ctx context.Context, cfg *config.Config, version string, log *slog.Logger) (*Local, error) {
	l := &Local{}
	if err := l.open(ctx, cfg, version, log); err != nil {
		return nil, errors.Join(err, l.Close(ctx))
	}
	return l, nil
}

func (l *Local) open(ctx context.Context, cfg *config.Config, version string, log *slog.Logger) error {
	b := fit(cfg)
	vc, err := vfsConfig(cfg, log)
	if err != nil {
		return err
	}
	if l.cluster, err = openCluster(ctx, cfg, opener{version: version, budgets: b, log: log}); err != nil {
		return err
	}
	vc.NoBackground = true
	if l.fs, err = vfs.Open(ctx, l.cluster, vc); err != nil {
		return explain(err)
	}
	tellSealing(l.fs.SealState(), log)
	if l.audit, err = openAudit(cfg, version, log); err != nil {
		return err
	}
	l.api = admin.New(admin.Config{
		Exports: newExportBook(l.fs, log, notServed(cfg)),
		FS:      l.fs, Logger: slog.New(slog.DiscardHandler), Version: version,
		Dir: cfg.Cluster.Dir, Engine: cfg.Cluster.Place(), PID: os.Getpid(), Started: time.Now(),
		Domains: cfg.Domains(), KeysChanged: credentialsOf(cfg, vc).keysChanged,
		Done: l.audit.http("admin", "", apiCode),
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
