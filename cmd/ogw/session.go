package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"ogw/cmd/ogw/server"
	"ogw/httpapi/admin"
)

// session is a command's way to the API.
type session struct {
	*admin.Client
	// running reports whether a process answers, instead of the command itself.
	running bool
	// alone reports why others may have used the store beside this command, which has
	// opened it itself.
	alone func() error
	// markMoved makes the store one that was moved to a place.
	markMoved func(ctx context.Context, place string) error
	close     func() error
}

// open connects to the process that serves the data folder, and if there is
// none opens the cluster.
func (o *common) open(ctx context.Context) (*session, error) { return o.openMoved(ctx, "") }

// openMoved is open, for a store that may have been moved to a place.
func (o *common) openMoved(ctx context.Context, place string) (*session, error) {
	s, err := o.dial(ctx)
	if !errors.Is(err, admin.ErrNotRunning) {
		return s, err
	}
	if _, err := os.Stat(o.cfg.Cluster.Dir); errors.Is(err, fs.ErrNotExist) {
		return nil, &exitError{exitNotFound, fmt.Errorf(
			"there is no data folder %s; name it with --dir, or make it with ogw serve", o.cfg.Cluster.Dir)}
	}
	l, err := server.OpenLocal(ctx, o.cfg, server.LocalOptions{Version: version, Log: o.logger(slog.LevelWarn), MovedTo: place})
	if err != nil {
		return nil, err
	}
	return &session{Client: admin.Local(l.API()), alone: l.Alone, markMoved: l.MarkMoved, close: func() error { return l.Close(context.WithoutCancel(ctx)) }}, nil
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
		return &session{Client: c, running: true, close: none}, err
	}
	c, err := admin.Dial(ctx, filepath.Join(o.cfg.Cluster.Dir, admin.SocketName))
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, o.cfg.Cluster.Dir)
	}
	return &session{Client: c, running: true, close: none}, nil
}

// with runs fn in a session.
func (o *common) with(ctx context.Context, fn func(*session) error) error {
	s, err := o.open(ctx)
	if err != nil {
		return err
	}
	return errors.Join(fn(s), s.close())
}
