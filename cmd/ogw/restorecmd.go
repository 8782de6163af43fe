package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"ogw/cmd/ogw/backup"
	"ogw/cmd/ogw/config"
	"ogw/cmd/ogw/server"
	"ogw/httpapi/admin"
	"ogw/vfs"
	"ogw/vfs/seal"
)

func restoreCommand(env *environment) *cli.Command {
	return &cli.Command{
		Name: "restore", Usage: "bring a backup back into an empty data folder", ArgsUsage: "TARGET [SNAPSHOT]",
		Description: placeHelp + `
The newest backup, if no SNAPSHOT is named. The data folder (--dir) must be new or
empty; a restore that was interrupted goes on when it is called again.`,
		Flags: append(append(commonFlags(), placeFlags()...),
			&cli.StringFlag{Name: "key-file", Usage: "open the secrets in the backup with the keys in `FILE`"},
			&cli.BoolFlag{Name: "copy", Usage: "make a store of its own, to be used beside the original"},
			&cli.BoolFlag{Name: "skip-damaged", Usage: "leave out data that are damaged in the backup"}),
		Action: action(func() command { return &restore{place: place{common: common{env: env}}} }),
	}
}

// restore brings a backup back.
type restore struct {
	place
	snapshot string
	keyFile  string
	copy     bool
	skip     bool
}

// ParseFlags implements command.
func (r *restore) ParseFlags(c *cli.Context) (err error) {
	if c.Args().Len() > 2 {
		err = fmt.Errorf("%s takes a target and a snapshot; there is %q", c.Command.HelpName, c.Args().Get(2))
	}
	r.snapshot, r.keyFile, r.copy, r.skip = c.Args().Get(1), c.String("key-file"), c.Bool("copy"), c.Bool("skip-damaged")
	if r.snapshot == "" {
		r.snapshot = "latest"
	}
	return errors.Join(err, r.place.ParseFlags(c))
}

// Validate implements command.
func (r *restore) Validate() error {
	if r.remote != "" {
		return errors.New("a backup is restored where the data folder is: --admin has no meaning here")
	}
	return r.place.Validate()
}

// Run implements command.
func (r *restore) Run(ctx context.Context) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	repo, err := r.repository(ctx)
	if err != nil {
		return err
	}
	snap, err := repo.Load(ctx, r.snapshot)
	if err != nil {
		return err
	}
	_, opens, err := r.keys(r.keyFile)
	if err != nil {
		return err
	}
	if err := opensNone(snap, opens); err != nil {
		return err
	}
	keys, err := server.Keys(r.cfg)
	if err != nil {
		return err
	}
	if s, err := r.dial(ctx); err == nil {
		return &exitError{exitInUse, errors.Join(fmt.Errorf("a process serves %s: name an empty folder with --dir", r.cfg.Cluster.Dir), s.close())}
	} else if !errors.Is(err, admin.ErrNotRunning) {
		return err
	}
	if err := server.CheckDir(r.cfg.Cluster.Dir); err != nil {
		return err
	}
	r.cfg.Cluster.Gateways = config.OneGateway // nobody looks on
	engine, err := server.OpenEngine(ctx, r.cfg, server.EngineOptions{Version: version, Log: r.logger(slog.LevelWarn), Make: true})
	if err != nil {
		return err
	}
	line := newProgressLine(r.env.stderr)
	done, err := backup.Restore(ctx, repo, snap, engine, backup.RestoreConfig{
		RestoreConfig: vfs.RestoreConfig{Opens: opens, Keys: keys, Copy: r.copy}, SkipDamaged: r.skip, Progress: line.show,
	})
	line.end()
	err = errors.Join(err, engine.Close())
	switch {
	case errors.Is(err, vfs.ErrExist):
		return &exitError{exitUsage, fmt.Errorf("%s: %w", r.cfg.Cluster.Dir, err)}
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted; ogw restore goes on where it was when it is called again")
	case err != nil:
		return err
	}
	if r.json {
		return cmp.Or(r.printJSON(done), lostBlobs(&done))
	}
	r.printf("snapshot %s of store %s, %s, is restored to %s: %d records and %d blobs, %s\n", snap.ID, snap.FSID, snap.Time.Local().Format("2006-01-02 15:04:05"),
		r.cfg.Cluster.Dir, done.Records, done.Blobs, bytesText(done.Bytes))
	r.printf("%s", lockedText(&done))
	if snap.Secrets.Lost > 0 {
		r.printf("%d secrets are not in the backup: users, root too, need new keys (ogw user key add, ogw user rotate root)\n", snap.Secrets.Lost)
	}
	r.printf("next: ogw check --data, then ogw serve\n")
	return lostBlobs(&done)
}

// opensNone returns an error if a key file that was named has not the key that the backup
// was made with. Without one, only the secrets themselves tell what seals them.
func opensNone(snap *backup.Snapshot, opens *seal.Keyring) error {
	if opens == nil || len(snap.Keys) == 0 || slices.Contains(opens.IDs(), snap.Keys[0]) {
		return nil
	}
	return &exitError{exitUsage, fmt.Errorf("--key-file: it has not key %s, which seals the secrets of snapshot %s", snap.Keys[0], snap.ID)}
}

// lockedText tells of secrets that the restored store cannot open, "" if there are none.
func lockedText(done *backup.Restored) string {
	if done.LockedSecrets == 0 {
		return ""
	}
	refused := "their access keys"
	if done.LockedSecrets == done.Secrets {
		refused = "all access keys, root's too,"
	}
	return fmt.Sprintf("%d of %d secrets stay sealed with key %s: %s are refused until it is in cluster.key_file "+
		"(or restore with --key-file), or users have new ones (ogw user key add, ogw user rotate root)\n",
		done.LockedSecrets, done.Secrets, strings.Join(done.LockedBy, ", "), refused)
}
