package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"ogw/cluster"
	"ogw/cmd/ogw/mounts"
	"ogw/cmd/ogw/server"
	"ogw/fusemount"
	"ogw/httpapi/admin"
	"ogw/vfs"
)

const (
	// mountPoll is how often mount looks for a process to come or to go.
	mountPoll = 100 * time.Millisecond
	// mountWait is how long mount waits for a process that is just
	// ending to let go of the folder: after "umount" it takes a moment.
	mountWait = 10 * time.Second
)

// mount mounts the namespace.
type mount struct {
	common
	mountOptions
	foreground bool
	background bool
	helper     bool // called by mount(8): in the background, and silent
	fake       bool // mount -f of mount(8): everything but the mount
}

const mountDescription = `SOURCE is the data folder, or a name for the mount table. If a process serves the
data folder, it makes the mount and this command returns. Else this command opens
the folder and serves the mount until Ctrl-C or umount, with --background without
a terminal.

Options of -o, as in fstab: ro, allow_other, nonempty, subtree=PATH, dir=FOLDER,
config=FILE, set=SECTION.KEY=VALUE, fsname=NAME, metrics=ADDRESS, wait=TIME,
writeback, flush_behind, no_handles, survive, abandon=TIME,
io_uring=auto|on|off, entry_timeout=SECONDS, attr_timeout=SECONDS, suid,
nosuid, dev, nodev, exec, noexec, noatime, nodiratime, nosymfollow, sync. remount changes ro, rw and
those from suid to nosymfollow of a mount that is there. Those for mount and systemd (noauto, _netdev,
x-systemd.*) are ignored. Linked to /sbin/mount.fuse.ogw, this program serves

   mount -t fuse.ogw /var/lib/ogw /mnt/ogw -o allow_other
   /var/lib/ogw  /mnt/ogw  fuse.ogw  allow_other,_netdev  0  0      (fstab)`

func mountCommand(env *environment) *cli.Command {
	return &cli.Command{
		Name: "mount", Usage: "mount the namespace, or a directory of it, with FUSE", ArgsUsage: "[SOURCE] DIR",
		Description: mountDescription,
		Flags: append(commonFlags(),
			&cli.StringSliceFlag{Name: "o", Usage: "mount `OPTIONS`, separated by commas"},
			&cli.BoolFlag{Name: "foreground", Aliases: []string{"f"}, Usage: "stay until the mount ends, also if a server makes it; Ctrl-C unmounts"},
			&cli.BoolFlag{Name: "background", Aliases: []string{"b"}, Usage: "return when mounted; the log goes to the journal or to " + server.MountLog + " in the data folder"},
			&cli.StringFlag{Name: "metrics", Usage: "serve /metrics at `ADDRESS`"},
			&cli.StringFlag{Name: "subtree", Usage: "show only this `PATH` of the namespace, such as a bucket"},
			&cli.BoolFlag{Name: "read-only", Usage: "refuse changes"},
			&cli.BoolFlag{Name: "allow-other", Usage: "let other users in"},
			&cli.BoolFlag{Name: "nonempty", Usage: "mount over a folder with entries"},
			&cli.BoolFlag{Name: "writeback", Usage: "let the kernel gather small writes; for files that nobody else changes"},
			&cli.BoolFlag{Name: "flush-behind", Usage: "do not wait for the disk when a file is closed, as local file systems"},
			&cli.BoolFlag{Name: "helper", Hidden: true, Usage: "behave as mount(8) expects"},
			&cli.BoolFlag{Name: "sloppy", Hidden: true, Usage: "ignore unknown options"},
			&cli.BoolFlag{Name: "fake", Hidden: true, Usage: "do all but the mount"}),
		Action: action(func() command { return &mount{common: common{env: env}} }),
	}
}

// ParseFlags implements command.
func (m *mount) ParseFlags(c *cli.Context) (err error) {
	if n := c.Args().Len(); n < 1 || n > 2 || c.Args().Get(n-1) == "" {
		return fmt.Errorf("%s takes a folder to mount at, and before it, if need be, a source", c.Command.HelpName)
	}
	for _, list := range c.StringSlice("o") {
		if err := m.parse(list, c.Bool("sloppy")); err != nil {
			return err
		}
	}
	if c.Args().Len() == 2 {
		if err := m.source(c.Args().First()); err != nil {
			return err
		}
	}
	o := &m.mountOptions
	o.mount.ReadOnly = o.mount.ReadOnly || c.Bool("read-only")
	o.mount.AllowOther = o.mount.AllowOther || c.Bool("allow-other")
	o.mount.NonEmpty = o.mount.NonEmpty || c.Bool("nonempty")
	o.mount.Writeback = o.mount.Writeback || c.Bool("writeback")
	o.mount.FlushBehind = o.mount.FlushBehind || c.Bool("flush-behind")
	if s := c.String("subtree"); s != "" {
		o.mount.Subtree = s
	}
	if s := c.String("metrics"); s != "" {
		o.metrics = s
	}
	if o.mount.Dir, err = filepath.Abs(c.Args().Get(c.Args().Len() - 1)); err != nil {
		return err
	}
	m.foreground, m.helper, m.fake = c.Bool("foreground"), c.Bool("helper"), c.Bool("fake")
	m.background = c.Bool("background") || m.helper && !m.foreground
	if m.helper && os.Geteuid() == 0 {
		o.addDropped()
	}
	if m.remount {
		if m.helper { // mount(8) names all flags that are not its defaults
			m.flags = append([]string{"rw", "suid", "dev", "exec", "relatime", "diratime"}, m.flags...)
		} else if len(m.fixed) > 0 {
			return fmt.Errorf("remount cannot change %s: umount and mount again", m.fixed[0])
		}
		return m.common.ParseFlags(c)
	}
	if m.foreground && m.background {
		return errors.New("--foreground and --background exclude each other")
	}
	return m.parseCommon(c)
}

// parseCommon reads the common flags; what -o says is as strong as a flag.
func (m *mount) parseCommon(c *cli.Context) error {
	if err := m.common.ParseFlags(c); err != nil {
		return err
	}
	if m.config != "" {
		m.sources.File = m.config
	}
	m.sources.Set = append(m.sources.Set, m.set...)
	if m.dir != "" {
		m.sources.Set = append(m.sources.Set, "cluster.dir="+m.dir)
	}
	if m.helper && m.dir == "" && m.sources.File == "" && m.getenv("OGW_CLUSTER_DIR") == "" {
		return errors.New("name the data folder: as the source, or with the option dir=FOLDER or config=FILE")
	}
	return nil
}

// Run implements command. A process that is just ending is waited for.
func (m *mount) Run(ctx context.Context) error {
	if m.fake {
		return nil
	}
	if m.remount {
		if err := fusemount.Remount(m.mount.Dir, m.flags); err != nil {
			return err
		}
		return m.done("%s has the new flags\n", m.mount.Dir)
	}
	for begin := time.Now(); ; time.Sleep(mountPoll) {
		err := m.try(ctx)
		var remote *admin.Error
		switch {
		case errors.Is(err, admin.ErrNotRunning) && time.Since(begin) < m.wait:
		case errors.Is(err, admin.ErrNotRunning):
			return fmt.Errorf("%w: waited %v for one", err, m.wait)
		case (errors.Is(err, cluster.ErrLocked) || errors.Is(err, vfs.ErrClosed) ||
			errors.As(err, &remote) && remote.Status == http.StatusServiceUnavailable) && time.Since(begin) < mountWait:
		default:
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// try asks the process that serves the folder, or serves the mount itself.
func (m *mount) try(ctx context.Context) error {
	s, err := m.dial(ctx)
	switch {
	case errors.Is(err, admin.ErrNotRunning) && m.wait > 0:
		return err
	case errors.Is(err, admin.ErrNotRunning) && m.background && m.env.ready == nil:
		pid, err := background(m.env, m.env.args)
		if err != nil {
			return err
		}
		return m.done("%s is mounted by process %d in the background\n", m.mount.Dir, pid)
	case errors.Is(err, admin.ErrNotRunning):
		return m.serve(ctx)
	case err != nil:
		return err
	case m.metrics != "":
		return usageError("the process that serves %s makes the mount and counts its requests: see /metrics of its admin API; --metrics is for a mount without one", m.cfg.Cluster.Dir)
	}
	if err := s.Mount(ctx, m.mount); err != nil {
		if m.helper && m.mount.Subtree != "" && m.isThere(ctx, s) {
			return nil
		}
		return err
	}
	if err := m.done("%s is mounted by the process that serves %s\n", m.mount.Dir, m.cfg.Cluster.Dir); err != nil || !m.foreground {
		return err
	}
	return m.follow(ctx, s)
}

// isThere reports whether the process has this mount already. A directory that
// shares its superblock is no root in the mount table, so that mount -a does not
// recognize its line of fstab and calls us for it again.
func (m *mount) isThere(ctx context.Context, s *session) bool {
	st, err := s.Status(ctx)
	return err == nil && slices.ContainsFunc(st.Mounts, func(x admin.Mount) bool {
		return x.Dir == m.mount.Dir && strings.Trim(x.Subtree, "/") == strings.Trim(m.mount.Subtree, "/") && fusemount.IsMount(x.Dir)
	})
}

// follow stays until a mount that another process made ends, and ends it when
// it is told to stop itself.
func (m *mount) follow(ctx context.Context, s *session) error {
	log, _ := m.logs()
	stop, release := m.signals(ctx, log)
	defer release()
	if err := notify(m.getenv, "READY=1"); err != nil {
		return err
	}
	for {
		select {
		case <-stop.Done():
			_, err := s.Umount(ctx, m.mount.Dir, false)
			return err
		case <-time.After(mountPoll):
		}
		if !fusemount.IsMount(m.mount.Dir) {
			return nil
		}
	}
}

// serve makes the mount in this process, and ends with its last one: others
// may ask it for more.
func (m *mount) serve(ctx context.Context) error {
	if m.mount.Survive {
		return usageError("survive is for mounts that a server makes: start one on %s (ogw serve) first; this process ends with its mounts", m.cfg.Cluster.Dir)
	}
	m.cfg.Gateways = nil
	log, access := m.logs()
	server.TuneCollector(m.cfg, m.getenv)
	untilStopped, release := m.signals(ctx, log)
	defer release()
	p, err := server.Open(ctx, m.cfg, server.Options{Version: version, Log: log, Access: access, Metrics: m.metrics, UntilUnmounted: true,
		Making: func() error { return mounts.Check(m.mount, log) }})
	if err != nil && untilStopped.Err() != nil {
		return untilStopped.Err() // not tried again
	}
	if err != nil {
		return err
	}
	if file, made := p.RootKey(); made != nil && file == "" {
		log.Warn("this is the first start: the key of the user root is sealed and not shown; ogw user rotate makes a new one", "user", server.RootUser)
	}
	ctx = untilStopped
	if m.env.ready != nil {
		err = detach(m.cfg.Cluster.Dir, m.getenv)
	}
	if err == nil {
		p.RestoreMounts(ctx, m.mount.Dir)
		err = p.Mount(ctx, m.mount)
	}
	if err == nil && m.env.ready != nil {
		err = m.env.ready.send(report{})
	} else if err == nil {
		err = errors.Join(m.done("%s is mounted; Ctrl-C unmounts\n", m.mount.Dir), notify(m.getenv, "READY=1"))
	}
	if err != nil {
		return errors.Join(err, p.Close())
	}
	return p.Run(ctx)
}

func (m *mount) done(format string, args ...any) error {
	switch {
	case m.helper:
		return nil
	case m.json:
		return m.printJSON(m.mount)
	}
	m.printf(format, args...)
	return nil
}
