package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"ogw/cluster/local"
	"ogw/cmd/ogw/audit"
	"ogw/cmd/ogw/config"
	"ogw/httpapi"
	"ogw/httpapi/iam"
	"ogw/httpapi/rest"
	"ogw/httpapi/s3"
	"ogw/httpapi/sigv4"
	"ogw/nfsserver"
	"ogw/nfsserver/rpc"
	"ogw/vfs"
	"ogw/vfs/clients/guess"
)

// protocols has the constructor of each protocol's gateways. Without one is
// "embed": the Go packages are the interface, and nothing listens.
var protocols = map[string]func(*gateways, context.Context, config.Gateway, net.Listener) (*door, error){
	"s3":   (*gateways).openS3,
	"rest": (*gateways).openREST,
	"nfs":  (*gateways).openNFS,
}

// gateways are the configured listeners, and what all of a kind share.
type gateways struct {
	cfg       *config.Config
	opt       *Options
	engine    *engine
	namespace *namespace

	guesses     *guess.Guard
	connections int // that each door takes at once
	sends       *httpapi.Sends

	doors   []*door
	exports *exportBook
	locks   *lockBook
}

// openGateways is the third step. What it returns is to be closed after an error
// too.
func openGateways(ctx context.Context, cfg *config.Config, opt *Options, e *engine, n *namespace) (*gateways, error) {
	s := &gateways{
		cfg: cfg, opt: opt, engine: e, namespace: n,
		guesses: guess.New(), connections: connectionLimit(cfg.Server.Connections, listeners(cfg, opt), local.OpenFileLimit(), opt.Log),
		sends: httpapi.NewSends(cmp.Or(e.budgets.sends, 1)),
	}
	var exporting []exportGateway
	var locking []lockGateway
	for _, g := range cfg.Gateways {
		if protocols[g.Protocol] == nil {
			continue
		}
		d, err := s.open(ctx, g)
		if d != nil {
			s.doors = append(s.doors, d)
		}
		if err != nil {
			return s, err
		}
		if d.nfs != nil {
			exporting = append(exporting, exportGateway{g, d.nfs})
			locking = append(locking, lockGateway{g.Name, d.nfs})
		}
	}
	s.locks = &lockBook{fs: n.fs, log: opt.Log, mounts: n.mounts, gateways: locking}
	s.exports = newExportBook(n.fs, opt.Log, exporting)
	if err := s.exports.open(ctx); err != nil {
		return s, fmt.Errorf("exports: %w", err)
	}
	return s, nil
}

// listeners is how many doors have connections: gateways, and those of operators.
func listeners(cfg *config.Config, opt *Options) int {
	n := 1 // the admin socket
	for _, g := range cfg.Gateways {
		if protocols[g.Protocol] != nil {
			n++
		}
	}
	for _, address := range []string{cfg.Admin.Listen, opt.Metrics} {
		if address != "" {
			n++
		}
	}
	return n
}

// open opens one gateway. After an error too, the door is to be shut down, if there
// is one.
func (s *gateways) open(ctx context.Context, g config.Gateway) (*door, error) {
	l, err := listen(g, s.opt.Log)
	if err != nil {
		return nil, err
	}
	d, err := protocols[g.Protocol](s, ctx, g, l)
	if err != nil {
		err = errors.Join(err, l.Close())
	}
	return d, err
}

// close drains the doors until ctx ends.
func (s *gateways) close(ctx context.Context) error {
	err := shutdown(ctx, s.doors, s.opt.Log)
	s.exports.close()
	return err
}

func (s *gateways) openS3(_ context.Context, g config.Gateway, l net.Listener) (*door, error) {
	e := s.engine
	objects := s3.New(s.namespace.fs, s3.Config{
		Region: g.Region, Domains: s.cfg.DomainsAt(&g), BareHosts: g.BareHosts, V2: v2Accepted[g.V2Signatures],
		Sends: s.sends, MaxRequests: cmp.Or(g.MaxRequests, e.budgets.requests), MaxObjectBytes: int64(g.MaxObject),
		Guesses: s.guesses, Logger: s.opt.Access, Done: both(e.meters.http(g.Name), e.audit.http("s3", g.Name, s3.Code)),
	})
	return s.httpDoor(g, l, iam.New(s.namespace.fs, iam.Config{
		Next: objects, Sends: s.sends, Guesses: s.guesses, Logger: s.opt.Access,
		Done: both(e.meters.http(g.Name), e.audit.http("iam", g.Name, iam.Code)),
	}))
}

func (s *gateways) openREST(_ context.Context, g config.Gateway, l net.Listener) (*door, error) {
	e := s.engine
	return s.httpDoor(g, identified(g, l, s.opt.Log), rest.New(rest.Config{
		FS: s.namespace.fs, Logger: s.opt.Access, Done: both(e.meters.http(g.Name), e.audit.http("rest", g.Name, apiCode)),
		Guesses: s.guesses, Tokens: g.Tokens, Users: g.Users, Owner: restOwner(g), Hosts: g.Hosts, Origins: g.Origins,
		MaxObjectBytes: int64(g.MaxObject), Sends: s.sends, MaxRequests: cmp.Or(g.MaxRequests, e.budgets.requests),
		ActiveContent: g.ActiveContent,
	}))
}

func (s *gateways) openNFS(ctx context.Context, g config.Gateway, l net.Listener) (*door, error) {
	e, fs := s.engine, s.namespace.fs
	server, err := nfsserver.New(nfsserver.Config{
		FS: fs, Logger: s.opt.Access, RPC: rpc.Config{MaxConns: s.connections, Bytes: e.budgets.rpc},
		Instance: nfsInstance(s.cfg, g), Grace: time.Duration(g.Grace), Guesses: s.guesses,
		Done: e.audit.nfs(fs, g.Name), DoneAll: e.audit.log.Wants(audit.Data),
	})
	if err != nil {
		return nil, err
	}
	d, err := nfsDoor(ctx, g, l, server, s.opt.Log)
	return d, errors.Join(err, e.meters.addNFS(g.Name, server))
}

// restOwner is who owns what comes without a user: the one who runs the
// process, unless configured.
func restOwner(g config.Gateway) *vfs.Cred {
	uid, gid := uint32(os.Getuid()), uint32(os.Getgid())
	if g.UID != nil {
		uid = *g.UID
	}
	if g.GID != nil {
		gid = *g.GID
	}
	return vfs.NewCred(uid, gid)
}

// v2Accepted puts the configuration in the terms of the signatures' package.
var v2Accepted = map[config.V2]sigv4.V2{"": sigv4.V2URLs, config.V2URLs: sigv4.V2URLs, config.V2All: sigv4.V2All, config.V2None: sigv4.V2None}
