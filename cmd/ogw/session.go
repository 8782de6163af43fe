package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"ogw/cluster"
	"ogw/httpapi/admin"
	"ogw/vfs"
)

// session is a command's way to the API.
type session struct {
	*admin.Client
	// running tells that a process answers, not the command itself.
	running bool
	close   func() error
}

// open connects to the process that serves the data folder, and if there is
// none opens the cluster.
func (o *common) open(ctx context.Context) (*session, error) {
	s, err := o.dial(ctx)
	if !errors.Is(err, admin.ErrNotRunning) {
		return s, err
	}
	if _, err := os.Stat(o.cfg.Cluster.Dir); errors.Is(err, fs.ErrNotExist) {
		return nil, &exitError{exitNotFound, fmt.Errorf(
			"there is no data folder %s; name it with --dir, or make it with ogw serve", o.cfg.Cluster.Dir)}
	}
	log := o.logger(slog.LevelWarn)
	b := fit(o.cfg)
	vc, err := vfsConfig(o.cfg, log)
	if err != nil {
		return nil, err
	}
	c, err := openEngine(ctx, o.cfg, b, log)
	if err != nil {
		return nil, err
	}
	vc.NoBackground = true
	store, err := vfs.Open(ctx, c, vc)
	if err != nil {
		return nil, errors.Join(explain(err), c.Close())
	}
	tellSealing(store.SealState(), log)
	trail, err := openAudit(o.cfg, log)
	if err != nil {
		return nil, errors.Join(err, store.Close(ctx), c.Close())
	}
	book := newExportBook(store, log)
	for _, g := range o.cfg.Gateways {
		if g.Protocol == "nfs" {
			book.serve(g, nil)
		}
	}
	api := admin.New(admin.Config{
		Exports: book,
		FS:      store, Logger: slog.New(slog.DiscardHandler), Version: version,
		Dir: o.cfg.Cluster.Dir, Engine: o.cfg.Cluster.Engine, PID: os.Getpid(), Started: time.Now(),
		Domains: domains(o.cfg), KeysChanged: credentialsOf(o.cfg, vc).keysChanged,
		Done: trail.http("admin", "", apiCode),
	})
	return &session{Client: admin.Local(api), close: func() error {
		return errors.Join(store.Close(context.WithoutCancel(ctx)), c.Close(), trail.log.Close())
	}}, nil
}

// dial connects to a running process; admin.ErrNotRunning.
func (o *common) dial(ctx context.Context) (*session, error) {
	none := func() error { return nil }
	if o.remote != "" {
		a := o.cfg.Admin
		c, err := admin.Remote(o.remote, admin.RemoteConfig{Token: a.Token, CA: a.CA, Pin: a.Pin, InClear: a.Insecure})
		if errors.Is(err, admin.ErrInClear) {
			err = &exitError{exitUsage, err}
		}
		return &session{c, true, none}, err
	}
	c, err := admin.Dial(ctx, filepath.Join(o.cfg.Cluster.Dir, admin.SocketName))
	if err != nil {
		return nil, err
	}
	return &session{c, true, none}, nil
}

// with runs fn in a session.
func (o *common) with(ctx context.Context, fn func(*session) error) error {
	s, err := o.open(ctx)
	if err != nil {
		return err
	}
	return errors.Join(fn(s), s.close())
}

// explain says what to do about errors of opening a store.
func explain(err error) error {
	switch {
	case errors.Is(err, cluster.ErrLocked):
		return fmt.Errorf("%w; stop it, or talk to it through the same --dir once it serves", err)
	case errors.Is(err, cluster.ErrFormat):
		return fmt.Errorf("%w; it is left as it is", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w; run this as the user who owns the data folder", err)
	}
	return err
}
