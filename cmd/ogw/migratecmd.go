package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"ogw/cluster"
	"ogw/cluster/pause"
	"ogw/cmd/ogw/backup"
	"ogw/cmd/ogw/config"
	"ogw/cmd/ogw/mounts"
	"ogw/cmd/ogw/server"
	"ogw/httpapi/admin"
	"ogw/vfs"
	"ogw/vfs/seal"
)

func migrateCommand(env *environment) *cli.Command {
	return &cli.Command{
		Name: "migrate", Usage: "move the store to another engine, or to other servers", ArgsUsage: "--to FILE",
		Description: `Moves the store of this configuration to the one of --to, which must be empty.
While the store is served, only what the other one does not have is moved, so
that it can be called again and again; the other one is no store yet. Once no
gateway serves this one, the next call moves what changed since, and ends: users,
keys, inode numbers and NFS handles are the same. What was interrupted goes on
when it is called again. Nothing is removed here, but this one is not opened any
more; --undo makes it a store again, as it was then. A variable OGW_TO_X is OGW_X
of the other configuration: OGW_TO_CLUSTER_OBJECTS_SECRET.`,
		Flags: append(commonFlags(),
			&cli.StringFlag{Name: "to", Usage: "configuration `FILE` of the new store"},
			&cli.StringFlag{Name: "limit", Usage: limitUsage},
			&cli.BoolFlag{Name: "undo", Usage: "make a store that was moved one again; give the new one up"}),
		Action: action(func() command { return &migrate{common: common{env: env}} }),
	}
}

// migrate moves a store.
type migrate struct {
	common
	file  string // the configuration of the new store
	limit config.Size
	undo  bool
	to    *config.Config // nil with undo
	keys  *seal.Keyring  // of the new store
}

// ParseFlags implements command.
func (m *migrate) ParseFlags(c *cli.Context) (err error) {
	m.file, m.undo = c.String("to"), c.Bool("undo")
	switch {
	case m.undo && (m.file != "" || c.IsSet("limit")):
		err = usageError("--undo goes with neither --to nor --limit")
	case !m.undo && m.file == "":
		err = fmt.Errorf("%s needs --to FILE, the configuration of the new store", c.Command.HelpName)
	}
	return errors.Join(err, noArgs(c), parseLimit(c, &m.limit), m.common.ParseFlags(c))
}

// Validate implements command.
func (m *migrate) Validate() (err error) {
	if m.remote != "" {
		return errors.New("a store is moved where its data folder is: --admin has no meaning here")
	}
	if m.undo {
		return m.common.Validate()
	}
	to := common{env: m.env, sources: config.Sources{File: m.file}}
	m.sources.Environ, to.sources.Environ = environments(m.env.environ)
	if err := m.common.Validate(); err != nil {
		return err
	}
	if err := to.Validate(); err != nil {
		return fmt.Errorf("--to: %w", err)
	}
	m.to = to.cfg
	if err := differ(&m.cfg.Cluster, &m.to.Cluster); err != nil {
		return fmt.Errorf("--to %s: %w", m.file, err)
	}
	m.keys, err = server.KeysBy(m.to, newPrefix+strings.TrimPrefix(server.KeyVariable, ownPrefix))
	return err
}

// The prefixes of variables of this configuration, and of the new store's.
const ownPrefix, newPrefix = "OGW_", "OGW_TO_"

// environments returns the variables of the store that is moved, and of the new one.
func environments(all []string) (from, to []string) {
	for _, kv := range all {
		if name, ok := strings.CutPrefix(kv, newPrefix); ok {
			to = append(to, ownPrefix+name)
			continue
		}
		from = append(from, kv)
		if !strings.HasPrefix(kv, ownPrefix) {
			to = append(to, kv)
		}
	}
	return from, to
}

// differ reports why two configurations cannot be of two stores on one machine.
func differ(from, to *config.Cluster) error {
	a, b := located(from.Dir), located(to.Dir)
	switch {
	case a == b:
		return fmt.Errorf("cluster.dir is %s in both configurations: the new store needs a data folder of its own, whatever its engine", from.Dir)
	case strings.HasPrefix(a, b+"/"), strings.HasPrefix(b, a+"/"):
		return fmt.Errorf("one cluster.dir lies in the other (%s, %s): the new store needs a data folder of its own", from.Dir, to.Dir)
	case from.Engine != config.EngineShared || to.Engine != config.EngineShared || from.Store != to.Store:
		return nil
	case from.Metadata == to.Metadata:
		return fmt.Errorf("cluster.metadata and cluster.store are the same in both configurations (%s, %s): it is one store", from.Metadata, from.Store)
	case from.Objects == to.Objects:
		return fmt.Errorf("cluster.objects and cluster.store are the same in both configurations (%s, %s): blobs are copied, so the new store needs another bucket or pool, or another name",
			from.Objects, from.Store)
	}
	return nil
}

// located returns the path of a folder, whatever name it was given by.
func located(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return resolved(dir)
}

// Run implements command.
func (m *migrate) Run(ctx context.Context) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	if m.undo {
		return m.takeBack(ctx)
	}
	source, err := m.source(ctx)
	if err != nil {
		return err
	}
	done, err := m.move(ctx, source)
	if err = errors.Join(err, source.close()); err != nil {
		return m.explain(err)
	}
	if err := m.summary(&done); err != nil {
		return err
	}
	if done.DamagedBlobs > 0 {
		return &exitError{exitProblems, fmt.Errorf("%d %s of the store cannot be read and %s not in the new one, where the files that use them are not whole: see ogw quarantine list",
			done.DamagedBlobs, plural(done.DamagedBlobs, "blob"), map[bool]string{true: "is", false: "are"}[done.DamagedBlobs == 1])}
	}
	return nil
}

// source opens the store that is moved, so that no gateway uses it if that can be.
func (m *migrate) source(ctx context.Context) (*session, error) {
	if err := m.noMounts(ctx); err != nil {
		return nil, err
	}
	gateways := m.cfg.Cluster.Gateways
	m.cfg.Cluster.Gateways = config.OneGateway
	s, err := m.openMoved(ctx, m.place())
	if errors.Is(err, cluster.ErrInUse) && gateways == config.ManyGateways {
		m.cfg.Cluster.Gateways = gateways
		s, err = m.open(ctx)
	}
	return s, err
}

// place names the new store, as the old one remembers it.
func (m *migrate) place() string {
	if m.to.Cluster.Engine == config.EngineEmbedded {
		return located(m.to.Cluster.Dir)
	}
	return m.to.Cluster.Place()
}

// takeBack makes the store one again.
func (m *migrate) takeBack(ctx context.Context) error {
	if _, err := os.Stat(m.cfg.Cluster.Dir); errors.Is(err, fs.ErrNotExist) {
		return &exitError{exitNotFound, fmt.Errorf("there is no data folder %s", m.cfg.Cluster.Dir)}
	}
	m.cfg.Cluster.Gateways = config.OneGateway // nobody looks on
	c, err := server.OpenEngine(ctx, m.cfg, server.EngineOptions{Version: version, Log: m.logger(slog.LevelWarn)})
	if err != nil {
		return err
	}
	place, err := vfs.UndoMove(ctx, c)
	if err = errors.Join(err, c.Close()); err != nil {
		return err
	}
	if place == "" {
		return usageError("the store (%s) was not moved, or not to the end: there is nothing to undo", m.cfg.Cluster.Place())
	}
	if m.json {
		return m.printJSON(struct {
			Place string `json:"given_up"`
		}{place})
	}
	m.printf("this is a store again (%s), as it was when it was moved\n", m.cfg.Cluster.Place())
	m.printf("do not serve the one it was moved to any more (%s): what was written there is not here\n", place)
	return nil
}

// holderWait is longer than the process that keeps mounts takes to see that the last one
// is gone.
const holderWait = 5 * time.Second

// noMounts refuses to move what mounts that survived their server still have to write.
func (m *migrate) noMounts(ctx context.Context) error {
	for begin := time.Now(); ; {
		if s, err := m.dial(ctx); err == nil {
			return s.close()
		} else if !errors.Is(err, admin.ErrNotRunning) {
			return err
		}
		wait, err := mounts.Wait(m.cfg.Cluster.Dir)
		if err != nil || !wait {
			return err
		}
		if time.Since(begin) > holderWait {
			return usageError("mounts of %s wait for a server, and may have what is not stored yet: serve it again, and end them with ogw umount", m.cfg.Cluster.Dir)
		}
		if err := pause.For(ctx, mountPoll); err != nil {
			return err
		}
	}
}

func (m *migrate) move(ctx context.Context, source *session) (done backup.Moved, err error) {
	target, err := m.target(ctx)
	if err != nil {
		return done, err
	}
	o := backup.MoveOptions{Keys: m.keys, Rate: int64(m.limit)}
	if !source.running && source.alone() == nil {
		o.Last = func() error {
			if err := source.alone(); err != nil {
				return fmt.Errorf("another gateway may have used the store meanwhile, so that the new one is not finished; run ogw migrate again: %w", err)
			}
			return source.markMoved(ctx, m.place()) // before the new one is a store: both never are
		}
	}
	line := newProgressLine(m.env.stderr)
	o.Progress = line.show
	done, err = backup.Move(ctx, source.Client, target, o)
	line.end()
	return done, errors.Join(err, target.Close())
}

// target opens what the new store is to be in.
func (m *migrate) target(ctx context.Context) (*cluster.Cluster, error) {
	if err := server.CheckDir(m.to.Cluster.Dir); err != nil {
		return nil, err
	}
	to := common{env: m.env, cfg: m.to}
	if s, err := to.dial(ctx); err == nil {
		return nil, &exitError{exitInUse, errors.Join(fmt.Errorf("--to %s: a process serves %s: the new store must be empty", m.file, m.to.Cluster.Dir), s.close())}
	} else if !errors.Is(err, admin.ErrNotRunning) {
		return nil, err
	}
	m.to.Cluster.Gateways = config.OneGateway // nobody looks on
	target, err := server.OpenEngine(ctx, m.to, server.EngineOptions{Version: version, Log: to.logger(slog.LevelWarn), Make: true})
	if err != nil {
		err = fmt.Errorf("--to %s: %w", m.file, err)
	}
	return target, err
}

func (m *migrate) explain(err error) error {
	switch {
	case errors.Is(err, vfs.ErrExist):
		return &exitError{exitUsage, fmt.Errorf("--to %s (%s): %w", m.file, m.to.Cluster.Place(), err)}
	case errors.Is(err, cluster.ErrMismatch):
		return &exitError{exitUsage, fmt.Errorf("--to %s: %w; name an empty bucket or pool, or another cluster.store", m.file, err)}
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted; ogw migrate goes on where it was when it is called again")
	}
	return err
}

func (m *migrate) summary(d *backup.Moved) error {
	if m.json {
		return m.printJSON(d)
	}
	rate := ""
	if d.Took > 0 && d.MovedBytes > 0 {
		rate = fmt.Sprintf(", %s/s", bytesText(int64(float64(d.MovedBytes)/d.Took.Seconds())))
	}
	m.printf("store %s as of %s: %d records and %d blobs, %s\n", d.FSID, d.Time.Local().Format(time.DateTime), d.Records, d.Blobs, bytesText(d.Bytes))
	m.printf("moved %d records and %d blobs, %s, in %v%s; the others were there\n",
		d.Changed, d.MovedBlobs, bytesText(d.MovedBytes), d.Took.Round(time.Millisecond), rate)
	if d.Secrets.Lost > 0 {
		m.printf("%d records with secrets are damaged, and were left out: their users need new keys (ogw user key add)\n", d.Secrets.Lost)
	}
	if m.keys == nil && d.Secrets.Sealed > 0 {
		m.printf("the new store has no cluster.key_file: %d secrets are in clear there\n", d.Secrets.Sealed)
	}
	if !d.Finished {
		m.printf("the store is in use, and the new one is none yet (%s)\n", m.to.Cluster.Place())
		m.printf("next: stop its gateways, then ogw migrate again, which moves what changed since\n")
		return nil
	}
	m.printf("it is moved (%s)\n", m.to.Cluster.Place())
	m.printf("next: ogw check --data --config %s, then ogw serve --config %s; the old one is not opened any more (ogw migrate --undo)\n", m.file, m.file)
	return nil
}
