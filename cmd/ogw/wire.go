package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"ogw/cluster/local"
	"ogw/cluster/metered"
	"ogw/cmd/ogw/audit"
	"ogw/cmd/ogw/config"
	"ogw/httpapi"
	"ogw/httpapi/admin"
	"ogw/httpapi/guess"
	"ogw/httpapi/rest"
	"ogw/httpapi/s3"
	"ogw/httpapi/sigv4"
	"ogw/nfsserver"
	"ogw/nfsserver/rpc"
	"ogw/vfs"
)

// wire puts a process together, from the bottom up:
//
//	engine ── metrics ── namespace ── doors ── listeners
//
// What it opened is closed again if it fails.
func wire(ctx context.Context, cfg *config.Config, log, access *slog.Logger) (p *process, err error) {
	p = &process{cfg: cfg, log: log, stop: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	started := time.Now()

	// Engine and its decorators.
	if err = checkDir(cfg.Cluster.Dir); err != nil {
		return p, err
	}
	b := fit(cfg)
	warnOfGroups(cfg, ownGroups, log)
	if p.engine, err = openEngine(ctx, cfg, b, log); err != nil {
		return p, err
	}
	if err = local.MakePrivate(cfg.Cluster.Dir, log, privateNames...); err != nil {
		return p, err
	}
	if p.audit, err = openAudit(cfg, log); err != nil {
		return p, err
	}
	meters := newMeters(version)
	store, err := metered.Wrap(p.engine, meters.registry)
	if err != nil {
		return p, err
	}

	// Namespace.
	vc, err := vfsConfig(cfg, log)
	if err != nil {
		return p, err
	}
	vc.Restore = func(ctx context.Context, fs *vfs.FS) error {
		p.mounts.init(fs, log, cfg.Cluster.Dir, meters, p.audit)
		p.mounts.takeOver(ctx)
		return nil
	}
	if p.fs, err = vfs.Open(ctx, store, vc); err != nil {
		return p, explain(err)
	}
	forgetKeys()
	sealing := p.fs.SealState()
	tellSealing(sealing, log)
	p.audit.sealed(sealing)
	if err = meters.addStore(p.fs); err != nil {
		return p, err
	}
	p.credentials = credentialsOf(cfg, vc)
	if p.firstKey, err = p.credentials.ensureRoot(ctx, p.fs); err != nil {
		return p, fmt.Errorf("root user: %w", err)
	}
	p.exports = newExportBook(p.fs, log)
	locks := &lockBook{fs: p.fs, log: log, mounts: &p.mounts}
	p.metrics = meters.handler()
	if err = meters.addAudit(p.audit.log); err != nil {
		return p, err
	}
	if err = meters.addState(func() bool { _, why := p.Store(); return why == nil }); err != nil {
		return p, err
	}
	if err = meters.addMounts(func() int { return len(p.Mounts()) }); err != nil {
		return p, err
	}

	// Doors and their listeners: one protocol each.
	guesses := guess.New()
	p.connections, p.sends = connectionLimit(cfg.Server.Connections, local.OpenFileLimit(), log), httpapi.NewSends(cmp.Or(b.sends, 1))
	for _, g := range cfg.Gateways {
		if g.Protocol == "embed" {
			continue // the Go packages are the interface: nothing listens
		}
		var l net.Listener
		if l, err = listen(g, cfg.Zero, log); err != nil {
			return p, err
		}
		var d *door
		switch g.Protocol {
		case "s3":
			d, err = httpDoor(g, l, s3.New(p.fs, s3.Config{
				Region: g.Region, Domains: g.Domains, BareHosts: g.BareHosts, V2: v2Accepted[g.V2Signatures], Sends: p.sends, MaxRequests: cmp.Or(g.MaxRequests, b.requests),
				MaxObjectBytes: int64(g.MaxObject), Guesses: guesses, Logger: access, Done: both(meters.http(g.Name), p.audit.http("s3", g.Name, s3.Code)),
			}), p.connections, p.sends, log)
		case "rest":
			l = identified(g, l, log)
			d, err = httpDoor(g, l, rest.New(rest.Config{
				FS: p.fs, Logger: access, Done: both(meters.http(g.Name), p.audit.http("rest", g.Name, apiCode)),
				Guesses: guesses, Tokens: g.Tokens, Users: g.Users, Owner: restOwner(g), Hosts: g.Hosts,
				MaxObjectBytes: int64(g.MaxObject), Sends: p.sends, MaxRequests: cmp.Or(g.MaxRequests, b.requests), ActiveContent: g.ActiveContent,
			}), p.connections, p.sends, log)
		case "nfs":
			var server *nfsserver.Server
			server, err = nfsserver.New(nfsserver.Config{
				FS: p.fs, Logger: access, RPC: rpc.Config{MaxConns: p.connections, Bytes: b.rpc},
				Instance: nfsInstance(cfg, g), Grace: g.Grace,
				Done: p.audit.nfs(p.fs, g.Name), DoneAll: p.audit.log.Wants(audit.Data),
			})
			if err == nil {
				d, err = nfsDoor(ctx, g, l, server, log)
				p.exports.serve(g, server)
				locks.gateways = append(locks.gateways, lockGateway{g.Name, server})
				err = errors.Join(err, meters.addNFS(g.Name, server))
			}
		}
		if d != nil {
			p.doors = append(p.doors, d)
		}
		if err != nil {
			return p, errors.Join(err, l.Close())
		}
	}

	if err = p.exports.open(ctx); err != nil {
		return p, fmt.Errorf("exports: %w", err)
	}

	// The operator's door, over everything else.
	api := admin.New(admin.Config{
		FS: p.fs, Process: p, Logger: access, Version: version,
		Dir: cfg.Cluster.Dir, Engine: cfg.Cluster.Engine, PID: os.Getpid(), Started: started,
		Exports: p.exports, Locks: locks,
		Domains: domains(cfg), Metrics: p.metrics,
		Done: both(meters.http("admin"), p.audit.http("admin", "admin", apiCode)), KeysChanged: p.credentials.keysChanged,
	})
	socket, err := admin.ListenSocket(filepath.Join(cfg.Cluster.Dir, admin.SocketName))
	if err != nil {
		return p, err
	}
	if err = p.addAdmin(config.Gateway{Name: "admin-socket"}, socket, api); err != nil {
		return p, err
	}
	if cfg.Admin.Listen != "" {
		g := config.Gateway{Name: "admin", Listen: cfg.Admin.Listen, TLSCert: cfg.Admin.TLSCert, TLSKey: cfg.Admin.TLSKey}
		var l net.Listener
		if l, err = listen(g, false, log); err != nil {
			return p, err
		}
		if err = p.addAdmin(g, l, api.WithToken(cfg.Admin.Token, guesses)); err != nil {
			return p, err
		}
	}
	p.failed = make(chan error, len(p.doors)+len(p.admin)) // never blocks a door
	return p, nil
}

func (p *process) addAdmin(g config.Gateway, l net.Listener, h http.Handler) error {
	g.Protocol = "admin"
	d, err := httpDoor(g, l, h, p.connections, p.sends, p.log)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	p.admin = append(p.admin, d)
	return nil
}

// metricsName is the name of the listener that has nothing but metrics.
const metricsName = "metrics"

// addMetrics serves the metrics and nothing else at an address.
func (p *process) addMetrics(address string) error {
	g := config.Gateway{Name: metricsName, Listen: address}
	l, err := listen(g, false, p.log)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", p.metrics)
	return p.addAdmin(g, l, mux)
}

func nfsClients(server *nfsserver.Server) []admin.NFSClient {
	out := []admin.NFSClient{}
	for _, c := range server.Clients() {
		out = append(out, admin.NFSClient{
			Address: c.Remote.String(), Machine: c.Machine, Since: c.Since.UTC(), Mounts: append([]string{}, c.Mounts...),
			Calls: c.Calls, InFlight: c.InFlight, BytesIn: c.In, BytesOut: c.Out,
		})
	}
	return out
}

// restOwner is who owns what comes without a user: the one who runs the
// process, unless configured.
func restOwner(g config.Gateway) vfs.Cred {
	c := vfs.Cred{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}
	if g.UID != nil {
		c.UID = *g.UID
	}
	if g.GID != nil {
		c.GID = *g.GID
	}
	return c
}

// v2Accepted puts the configuration in the terms of the signatures' package.
var v2Accepted = map[config.V2]sigv4.V2{"": sigv4.V2URLs, config.V2URLs: sigv4.V2URLs, config.V2All: sigv4.V2All, config.V2None: sigv4.V2None}
