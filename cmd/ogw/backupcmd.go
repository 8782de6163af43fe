package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"ogw/cmd/ogw/backup"
	"ogw/cmd/ogw/config"
	"ogw/httpapi/admin"
	"ogw/vfs/seal"
)

// placeFlags are how a bucket is reached.
func placeFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "endpoint", Usage: "`URL` of the S3 service (AWS_ENDPOINT_URL)"},
		&cli.StringFlag{Name: "region", Usage: "`REGION` of the bucket (AWS_REGION)"},
	}
}

const placeHelp = `TARGET is a folder, or s3://BUCKET/PREFIX. Credentials of S3 come from
AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the shared credentials file.`

// backupCommand makes a backup; its subcommands are about those there are.
func backupCommand(env *environment) *cli.Command {
	sub := operations(func(op string) command { return &backups{place: place{common: common{env: env}}, op: op} })
	return &cli.Command{
		Name: "backup", Usage: "copy the store, while it is in use, into a folder or a bucket", ArgsUsage: "TARGET",
		Description: placeHelp + `
Only what the target does not hold is moved. A backup that was interrupted goes
on with the next one.`,
		Flags: append(append(commonFlags(), placeFlags()...),
			&cli.StringFlag{Name: "key-file", Usage: "seal the secrets of the store in the backup with the first key in `FILE`"},
			&cli.BoolFlag{Name: "without-secrets", Usage: "leave out the secrets of the store: users need new keys, NFS clients mount again"},
			&cli.StringFlag{Name: "limit", Usage: limitUsage}),
		Action: action(func() command { return &backups{place: place{common: common{env: env}}, op: "create"} }),
		Subcommands: []*cli.Command{
			sub("list", "list the backups in a target", "TARGET", placeFlags()...),
			sub("verify", "read a backup, the newest if none is named, and compare it with its checksums", "TARGET [SNAPSHOT]", placeFlags()...),
			sub("remove", "remove backups, and what no other one needs", "TARGET [SNAPSHOT...]", append(placeFlags(),
				&cli.IntFlag{Name: "keep", Usage: "remove all but the last `N` of each store"})...),
		},
	}
}

// place is where backups are.
type place struct {
	common
	target           string
	endpoint, region string
}

// ParseFlags reads the target, which is the first argument.
func (p *place) ParseFlags(c *cli.Context) error {
	p.target, p.endpoint, p.region = c.Args().First(), c.String("endpoint"), c.String("region")
	if p.target == "" {
		return fmt.Errorf("%s needs a target: a folder, or s3://BUCKET/PREFIX", c.Command.HelpName)
	}
	return p.common.ParseFlags(c)
}

// isBucket reports whether the target is one of S3.
func (p *place) isBucket() bool { return strings.Contains(p.target, "://") }

// storage returns the target.
func (p *place) storage() (backup.Storage, error) {
	if p.isBucket() {
		s, err := backup.NewS3(p.target, backup.S3Config{Endpoint: p.endpoint, Region: p.region}, p.getenv)
		if err != nil {
			return nil, &exitError{exitUsage, err}
		}
		return s, nil
	}
	if p.endpoint != "" || p.region != "" {
		return nil, usageError("--endpoint and --region are for s3://BUCKET/PREFIX, and %s is a folder", p.target)
	}
	dir, err := filepath.Abs(p.target)
	if err != nil {
		return nil, err
	}
	if isWithin(dir, p.cfg.Cluster.Dir) {
		return nil, usageError("%s lies in the data folder; a backup belongs elsewhere, best on another machine", p.target)
	}
	return backup.NewDir(dir)
}

// repository opens the target, which must hold backups.
func (p *place) repository(ctx context.Context) (*backup.Repository, error) {
	if !p.isBucket() {
		if _, err := os.Stat(p.target); err != nil {
			return nil, &exitError{exitNotFound, err}
		}
	}
	s, err := p.storage()
	if err != nil {
		return nil, err
	}
	return backup.Open(ctx, s)
}

// keys reads a key file: its text, and the keys in it.
func (p *place) keys(path string) (text string, keys *seal.Keyring, err error) {
	if path == "" {
		return "", nil, nil
	}
	if keys, err = seal.Load(path, p.cfg.Cluster.Dir); err == nil && !p.isBucket() {
		keys, err = seal.Load(path, p.target)
	}
	if err != nil {
		return "", nil, &exitError{exitUsage, fmt.Errorf("--key-file: %w", err)}
	}
	b, err := os.ReadFile(path)
	return string(b), keys, err
}

// untilSignal returns a context that ends with SIGINT or SIGTERM.
func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
}

// backups is one operation on backups.
type backups struct {
	place
	op             string
	snapshots      []string
	keyFile        string
	withoutSecrets bool
	limit          config.Size
	keep           int
}

// ParseFlags implements command.
func (b *backups) ParseFlags(c *cli.Context) (err error) {
	if c.Args().Present() {
		b.snapshots = c.Args().Tail()
	}
	b.keyFile, b.withoutSecrets, b.keep = c.String("key-file"), c.Bool("without-secrets"), c.Int("keep")
	switch {
	case b.keyFile != "" && b.withoutSecrets:
		err = errors.New("--key-file and --without-secrets exclude each other")
	case (b.op == "create" || b.op == "list") && len(b.snapshots) > 0, b.op == "verify" && len(b.snapshots) > 1:
		err = fmt.Errorf("%s: there is more than it takes: %q", c.Command.HelpName, b.snapshots[len(b.snapshots)-1])
	case b.op == "remove" && (len(b.snapshots) == 0) != c.IsSet("keep"):
		err = fmt.Errorf("%s needs snapshots, as ogw backup list prints them, or --keep N", c.Command.HelpName)
	case c.IsSet("keep") && b.keep < 1:
		err = errors.New("--keep needs at least 1; name the snapshots to remove all")
	}
	return errors.Join(err, parseLimit(c, &b.limit), b.place.ParseFlags(c))
}

const limitUsage = "write at most `BYTES` a second, such as 50MiB"

func parseLimit(c *cli.Context, limit *config.Size) error {
	s := c.String("limit")
	if s == "" {
		return nil
	}
	if err := limit.UnmarshalTOML(s); err != nil || *limit <= 0 {
		return fmt.Errorf("--limit %s is not a number of bytes such as 50MiB", s)
	}
	return nil
}

// Run implements command.
func (b *backups) Run(ctx context.Context) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	switch b.op {
	case "list":
		return b.list(ctx)
	case "verify":
		return b.verify(ctx)
	case "remove":
		return b.remove(ctx)
	}
	return b.create(ctx)
}

func (b *backups) create(ctx context.Context) error {
	text, keys, err := b.keys(b.keyFile)
	if err != nil {
		return err
	}
	storage, err := b.storage()
	if err != nil {
		return err
	}
	return b.with(ctx, func(s *session) error {
		repo, err := backup.OpenOrMake(ctx, storage)
		if err != nil {
			return err
		}
		line := newProgressLine(b.env.stderr)
		snap, err := backup.Run(ctx, repo, s.Client, backup.Options{
			Secrets: admin.AddBackup{Keys: text, DropSecrets: b.withoutSecrets}, Keys: firstOf(keys.IDs()),
			Rate: int64(b.limit), Progress: line.show,
		})
		line.end()
		if err != nil {
			return explainBackup(err)
		}
		if err := b.summary(snap); err != nil {
			return err
		}
		return damageOf(snap)
	})
}

// damageOf returns what a backup found damaged, in the store and in the backup before it.
func damageOf(snap *backup.Snapshot) error {
	var list []error
	if snap.Alone != "" {
		list = append(list, fmt.Errorf("%s; this backup needs nothing of it, and moved all data again: "+
			"verify the older ones (ogw backup verify), and remove those that are damaged", snap.Alone))
	}
	if snap.DamagedBlobs > 0 {
		list = append(list, fmt.Errorf("%d %s of the store cannot be read, and the files that use them are not whole in this backup: see ogw quarantine list",
			snap.DamagedBlobs, plural(snap.DamagedBlobs, "blob")))
	}
	if len(list) == 0 {
		return nil
	}
	return &exitError{exitProblems, errors.Join(list...)}
}

func firstOf(list []string) []string { return list[:min(1, len(list))] }

// explainBackup adds what to do about errors of a backup.
func explainBackup(err error) error {
	var refused *admin.Error
	switch {
	case errors.As(err, &refused) && refused.Code == "invalid" && strings.Contains(refused.Message, "secrets in clear"):
		return &exitError{exitUsage, errors.New("the store keeps the secrets of users in clear (it has no cluster.key_file), and no backup carries them so: " +
			"name a key with --key-file FILE (openssl rand -base64 32 makes one), or leave them out with --without-secrets")}
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted; the next backup goes on with what is there")
	}
	return err
}

// summarized is a snapshot as it is shown: without its catalog.
type summarized struct {
	*backup.Snapshot
	Layers int `json:"layers"`
}

func (b *backups) summary(s *backup.Snapshot) error {
	if b.json {
		return b.printJSON(summarized{s, len(s.Layers)})
	}
	took := s.Finished.Sub(s.Began)
	b.printf("snapshot %s: %d records and %d blobs, %s\n", s.ID, s.Records, s.Blobs, bytesText(s.Bytes))
	rate := ""
	if took > 0 {
		rate = fmt.Sprintf(", %s/s", bytesText(int64(float64(s.Moved)/took.Seconds())))
	}
	b.printf("moved %s in %v%s; read back %s\n", bytesText(s.Moved), took.Round(time.Millisecond), rate, bytesText(s.ReadBack))
	if s.Resumed > 0 {
		b.printf("%s were there from backups that did not finish\n", bytesText(s.Resumed))
	}
	b.printf("writers waited %v at most\n", s.WriterWait.Round(10*time.Microsecond))
	if !s.Settled {
		b.printf("warning: no moment was found without a write in a buffer: what was written through mounts and NFS just then, and not synced, may be older\n")
	}
	if s.Secrets.Lost > 0 {
		b.printf("%d secrets are left out: restored users need new keys (ogw user key add), NFS clients mount again\n", s.Secrets.Lost)
	} else if s.Secrets.Sealed > 0 && len(s.Keys) > 0 {
		b.printf("%d secrets are sealed with key %s: keep it elsewhere\n", s.Secrets.Sealed, s.Keys[0])
	} else if s.Secrets.Sealed > 0 {
		b.printf("%d secrets are sealed with the cluster key: keep it elsewhere\n", s.Secrets.Sealed)
	}
	return nil
}

func (b *backups) list(ctx context.Context) error {
	repo, err := b.repository(ctx)
	if err != nil {
		return err
	}
	list, bad, err := repo.Snapshots(ctx)
	if err != nil {
		return err
	}
	if b.json {
		out := []summarized{}
		for _, s := range list {
			out = append(out, summarized{s, len(s.Layers)})
		}
		return errors.Join(b.printJSON(out), bad)
	}
	if len(list) == 0 {
		b.printf("no backup in %s is finished\n", repo)
		return bad
	}
	rows := [][]string{{"SNAPSHOT", "TIME", "STORE", "RECORDS", "BLOBS", "BYTES", "MOVED", "SECRETS", "DAMAGED"}}
	for _, s := range list {
		secrets := "sealed"
		if s.Secrets.Lost > 0 {
			secrets = "left out"
		}
		rows = append(rows, []string{s.ID, s.Time.Local().Format(time.DateTime), s.FSID, itoa(s.Records), itoa(s.Blobs),
			bytesText(s.Bytes), bytesText(s.Moved), secrets, itoa(s.DamagedBlobs)})
	}
	return errors.Join(b.table(rows), bad)
}

func (b *backups) verify(ctx context.Context) error {
	repo, err := b.repository(ctx)
	if err != nil {
		return err
	}
	id := "latest"
	if len(b.snapshots) > 0 {
		id = b.snapshots[0]
	}
	snap, err := repo.Load(ctx, id)
	if err != nil {
		return err
	}
	line := newProgressLine(b.env.stderr)
	done, err := backup.Verify(ctx, repo, snap, line.show)
	line.end()
	if err != nil {
		return err
	}
	state := "whole"
	if done.DamagedBlobs > 0 {
		state = "as it was made"
	}
	if b.json {
		err = b.printJSON(done)
	} else {
		b.printf("snapshot %s of store %s is %s: %d records and %d blobs, %s\n", snap.ID, snap.FSID, state, done.Records, done.Blobs, bytesText(done.Bytes))
	}
	return cmp.Or(err, lostBlobs(&done))
}

// lostBlobs returns an error if blobs of a snapshot are not in it, or were left out.
func lostBlobs(done *backup.Restored) error {
	var list []string
	if n := done.DamagedBlobs; n > 0 {
		list = append(list, fmt.Sprintf("%d %s could not be read when the backup was made", n, plural(n, "blob")))
	}
	if n := done.LostBlobs; n > 0 {
		text := fmt.Sprintf("%d damaged %s in the backup left out: %s", n, plural(n, "blob"), strings.Join(done.Lost[:min(len(done.Lost), namedBlobs)], ", "))
		if n > namedBlobs {
			text += ", …"
		}
		list = append(list, text)
	}
	if len(list) == 0 {
		return nil
	}
	return &exitError{exitProblems, errors.New(strings.Join(list, "; ") + ". The files that use them are not whole")}
}

// namedBlobs bounds the length of a message; the JSON output has more names.
const namedBlobs = 10

func (b *backups) remove(ctx context.Context) error {
	repo, err := b.repository(ctx)
	if err != nil {
		return err
	}
	ids := b.snapshots
	if b.keep > 0 {
		list, bad, err := repo.Snapshots(ctx)
		if err = errors.Join(err, bad); err != nil {
			return err
		}
		ids = backup.Keep(list, b.keep)
	}
	done, err := backup.Remove(ctx, repo, ids)
	if err != nil {
		return err
	}
	if b.json {
		return b.printJSON(done)
	}
	b.printf("%d %s removed, %s freed; %d remain, %s\n", len(ids), plural(len(ids), "snapshot"), bytesText(done.Freed), done.Snapshots, bytesText(done.Left))
	return nil
}
