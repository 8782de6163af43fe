package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"ogw/cmd/ogw/config"
	"ogw/httpapi/admin"
	"ogw/vfs/users"
)

// Options of a Server, beside its configuration.
type Options struct {
	Version string
	Log     *slog.Logger // of the process
	Access  *slog.Logger // of requests
	// Metrics is the address of a listener that has nothing but metrics, or "".
	Metrics string
	// Making is asked before a store is made, where there is none: its error leaves
	// the folder as it is. May be nil.
	Making func() error
	// UntilUnmounted has Run end when there is no mount any more.
	UntilUnmounted bool
}

// Server is a process that serves a data folder.
type Server struct {
	cfg *config.Config
	opt Options

	engine    *engine // each nil until its step
	namespace *namespace
	gateways  *gateways
	process   *process
	operators *operators
	firstKey  *users.AccessKey // root's, if it was made at this start
	served    bool             // set once, by Run
}

// Open opens what a process has, from the bottom up; all listeners are open then,
// and nobody is answered yet. What it opened is closed again if it fails.
func Open(ctx context.Context, cfg *config.Config, opt Options) (*Server, error) {
	s := &Server{cfg: cfg, opt: opt}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Server) open(ctx context.Context) (err error) {
	if s.engine, err = openEngine(ctx, s.cfg, &s.opt); err != nil {
		return err
	}
	if s.namespace, err = openNamespace(ctx, s.cfg, &s.opt, s.engine); err != nil {
		return err
	}
	if s.gateways, err = openGateways(ctx, s.cfg, &s.opt, s.engine, s.namespace); err != nil {
		return err
	}
	s.process = newProcess(s.engine, s.namespace, s.gateways)
	if s.operators, err = openOperators(s.cfg, &s.opt, s.process); err != nil {
		return err
	}
	// The last step: a start that failed afterwards would take the key with it, where
	// the store keeps it sealed.
	if s.firstKey, err = s.namespace.credentials.ensureRoot(ctx, s.namespace.fs); err != nil {
		return fmt.Errorf("root user: %w", err)
	}
	return nil
}

// RootKey returns where the key of the user root is kept besides the store, "" if
// nowhere, as where secrets are sealed, and the key itself if it was made at this start.
func (s *Server) RootKey() (file string, made *users.AccessKey) {
	return s.namespace.credentials.file(), s.firstKey
}

// Gateways returns the gateways, as the API returns them.
func (s *Server) Gateways() []admin.Gateway { return s.process.Gateways() }

// Mount makes a mount, as the API does.
func (s *Server) Mount(ctx context.Context, m admin.Mount) error { return s.process.Mount(ctx, m) }

// RestoreMounts mounts again what the process before had mounted, but at the
// directory except, which is about to be mounted.
func (s *Server) RestoreMounts(ctx context.Context, except string) {
	s.namespace.mounts.Restore(ctx, except)
}

// Run serves until ctx ends, Stop is called or a door fails, and then drains and
// closes everything.
func (s *Server) Run(ctx context.Context) error {
	doors := append(append([]*door(nil), s.gateways.doors...), s.operators.doors...)
	failed := make(chan error, len(doors)) // never blocks a door
	start(doors, failed)
	s.served = true
	s.engine.audit.started(s.cfg, s.firstKey)
	defer s.engine.audit.followRename()()
	defer watchQuiet(s.opt.Log)()
	if s.opt.UntilUnmounted {
		s.namespace.mounts.WhenEmpty(s.process.Stop)
	}
	var failure error
	select {
	case <-ctx.Done():
	case <-s.process.stop:
	case failure = <-failed:
		s.opt.Log.Error("a gateway failed, stopping", "error", failure)
	case <-s.engine.cluster.Lost:
		failure = s.engine.cluster.Live()
	}
	return errors.Join(failure, s.Close())
}

// Close drains the doors within the configured bound and closes everything below
// them, from the top down; the operators' doors answer until the namespace is
// closed.
func (s *Server) Close() (err error) {
	begin := time.Now()
	drain, cancel := context.WithTimeout(context.Background(), time.Duration(s.cfg.Server.Drain))
	defer cancel()
	if s.process != nil {
		s.process.Stop()
	}
	if s.gateways != nil {
		err = s.gateways.close(drain)
	}
	if s.namespace != nil {
		err = errors.Join(err, s.namespace.close())
	}
	if s.operators != nil {
		err = errors.Join(err, shutdown(drain, s.operators.doors, s.opt.Log))
	}
	if s.engine != nil {
		err = errors.Join(err, s.engine.close(s.served))
	}
	if s.served {
		s.opt.Log.Info("stopped", "took", time.Since(begin).Round(time.Millisecond))
	}
	return err
}
