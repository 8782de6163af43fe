package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"ogw/cluster"
	"ogw/cmd/ogw/config"
	"ogw/cmd/ogw/server"
	"ogw/cmd/ogw/terminal"
	"ogw/httpapi/admin"
)

// listenFlags set the addresses of gateways.
func listenFlags() []cli.Flag {
	flag := func(protocol string) cli.Flag {
		return &cli.StringFlag{Name: protocol, Usage: "`ADDRESS` of the " + protocol + " gateway, or off"}
	}
	return []cli.Flag{flag("s3"), flag("rest"), flag("nfs")}
}

// serve runs gateways until it is told to stop.
type serve struct {
	common
}

func serveCommand(env *environment) *cli.Command {
	return &cli.Command{
		Name: "serve", Usage: "run the configured gateways, by default S3, REST and NFS on loopback",
		Description: "Ctrl-C or SIGTERM drains and stops; a second one stops at once. Nothing that was\nacknowledged is lost by either.",
		Flags:       append(commonFlags(), listenFlags()...),
		Action:      action(func() command { return &serve{common{env: env}} }),
	}
}

// ParseFlags implements command.
func (s *serve) ParseFlags(c *cli.Context) error {
	if err := errors.Join(noArgs(c), s.common.ParseFlags(c)); err != nil {
		return err
	}
	s.sources.Listen = listenOf(c)
	return nil
}

func listenOf(c *cli.Context) map[string]string {
	out := map[string]string{}
	for _, protocol := range []string{"s3", "rest", "nfs"} {
		if v := c.String(protocol); v != "" {
			out[protocol] = v
		}
	}
	return out
}

// Run implements command.
func (s *serve) Run(ctx context.Context) error {
	log, access := s.logs()
	server.TuneCollector(s.cfg, s.getenv)
	// Before anybody can connect, and so know that there is something to stop. What
	// Open does is finished first.
	untilStopped, release := s.signals(ctx, log)
	defer release()
	p, err := server.Open(ctx, s.cfg, server.Options{Version: version, Log: log, Access: access})
	if err != nil {
		return s.besideMount(ctx, err)
	}
	p.RestoreMounts(untilStopped, "")
	if err := errors.Join(s.announce(p), notify(s.getenv, "READY=1")); err != nil {
		return errors.Join(err, p.Close())
	}
	return p.Run(untilStopped)
}

// besideMount adds to an error of a folder in use that a mount has it, which never
// serves what serve was to serve.
func (s *serve) besideMount(ctx context.Context, err error) error {
	if !errors.Is(err, cluster.ErrLocked) {
		return err
	}
	x, none := s.dial(ctx)
	if none != nil {
		return err
	}
	st, none := x.Status(ctx)
	// A server of mounts alone does not end with them: its mounts return.
	i := slices.IndexFunc(st.Mounts, func(m admin.Mount) bool { return m.Missing == "" && !m.Returns })
	if none != nil || len(st.Gateways) > 0 || i < 0 {
		return err
	}
	folder, dir := shellWord(st.Dir), shellWord(st.Mounts[i].Dir)
	return fmt.Errorf("%w. It is the ogw mount of %[2]s, which has no gateways: ogw umount --dir %[3]s %[2]s, then ogw serve --dir %[3]s, then ogw mount --dir %[3]s %[2]s", err, dir, folder)
}

// logs returns the log of the process and that of requests.
func (o *common) logs() (log, access *slog.Logger) {
	level, _ := o.cfg.Log.SlogLevel() // validated
	log = o.logger(level)
	access = log
	if o.cfg.Log.Access {
		access = o.logger(slog.LevelDebug)
	}
	for _, name := range config.UnknownVariables(o.env.environ) {
		if meant := config.MeantVariable(name); meant != "" {
			log.Warn("environment variable is not one of ours, and is ignored", "name", name, "meant", meant)
			continue
		}
		log.Debug("environment variable is not one of ours", "name", name)
	}
	return log, access
}

// signalEcho is the time after the first signal within which another is taken
// for the same: timeout(1) and some supervisors signal the process and then
// its group, at once. A person takes longer.
const signalEcho = 100 * time.Millisecond

// signals returns a context that ends with the first SIGINT or SIGTERM. The
// second ends the process: whoever sends it does not want to wait, and what
// was acknowledged survives a kill.
//
// At a terminal, SIGHUP says that it is gone, and ends the context, too; a shell
// and the kernel both send it, so that it is no second one. Elsewhere it means the
// audit log (server), and ends nothing.
func (o *common) signals(ctx context.Context, log *slog.Logger) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	received, hungUp := make(chan os.Signal, 2), make(chan os.Signal, 1)
	// The background half has the terminal of its parent for a while; nohup(1)
	// and the like have the signal ignored.
	atTerminal := o.env.ready == nil && terminal.Is(o.env.stderr) && !signal.Ignored(syscall.SIGHUP)
	signal.Notify(hungUp, syscall.SIGHUP)
	signal.Notify(received, os.Interrupt, syscall.SIGTERM)
	end := hungUp
	if !atTerminal {
		end = nil
	}
	go func() {
		var first time.Time
		select {
		case s := <-received:
			first = time.Now()
			log.Info("stopping; once more to stop at once", "signal", s.String())
			cancel()
		case <-end:
			first = time.Now()
			log.Info("stopping: the terminal is gone")
			cancel()
		case <-ctx.Done():
			return
		}
		for range received {
			if time.Since(first) > signalEcho {
				log.Warn("stopped at once")
				os.Exit(exitFailure)
			}
		}
	}()
	return ctx, func() {
		signal.Stop(received)
		signal.Stop(hungUp)
		cancel()
	}
}
