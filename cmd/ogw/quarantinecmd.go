package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"ogw/httpapi/admin"
	"ogw/vfs"
)

// quarantineCommand has a subcommand for each operation.
func quarantineCommand(env *environment) *cli.Command {
	sub := operations(func(op string) command { return &quarantine{common: common{env: env}, op: op} })
	return &cli.Command{
		Name: "quarantine", Usage: "list what is damaged on the medium, and delete what of it nobody needs",
		Action: noSubcommand,
		Subcommands: []*cli.Command{
			sub("list", "list the damaged blobs: what uses them, where their bytes are, what is wrong", ""),
			sub("release", "delete damaged blobs whose files were deleted or overwritten", "[BLOB...]",
				&cli.BoolFlag{Name: "all", Usage: "all of them"}),
		},
	}
}

// quarantine is one operation on damaged blobs.
type quarantine struct {
	common
	op  string
	ask admin.ReleaseDamaged
}

// ParseFlags implements command.
func (q *quarantine) ParseFlags(c *cli.Context) (err error) {
	if q.op == "list" {
		return errors.Join(noArgs(c), q.common.ParseFlags(c))
	}
	q.ask = admin.ReleaseDamaged{Blobs: c.Args().Slice(), All: c.Bool("all")}
	if q.ask.All != (len(q.ask.Blobs) == 0) {
		err = fmt.Errorf("%s needs blobs, as ogw quarantine list prints them, or --all", c.Command.HelpName)
	}
	return errors.Join(err, q.common.ParseFlags(c))
}

// Run implements command.
func (q *quarantine) Run(ctx context.Context) error {
	return q.with(ctx, func(s *session) error {
		if q.op == "release" {
			return q.release(ctx, s)
		}
		list, err := s.Quarantine(ctx)
		if err != nil {
			return err
		}
		if q.json {
			return q.printJSON(list)
		}
		return q.print(list.Blobs)
	})
}

func (q *quarantine) release(ctx context.Context, s *session) error {
	done, err := s.ReleaseDamaged(ctx, q.ask)
	if err != nil {
		return err
	}
	if q.json {
		return q.printJSON(done)
	}
	q.printf("%d damaged %s of %s released\n", done.Blobs, plural(done.Blobs, "blob"), bytesText(done.Bytes))
	return nil
}

func (q *quarantine) print(list []vfs.DamagedBlob) error {
	if len(list) == 0 {
		q.printf("nothing is damaged, as far as is known\n")
		return nil
	}
	rows := [][]string{{"BLOB", "BYTES", "FILES", "FOUND", "BY", "WHERE"}}
	for i := range list {
		d := &list[i]
		rows = append(rows, []string{d.Blob, itoa(d.Size), damagedFiles(d), d.Found.Format(time.RFC3339), d.By, damagedPlace(d)})
	}
	if err := q.table(rows); err != nil {
		return err
	}
	for i := range list {
		q.printf("%s: %s\n", list[i].Blob, list[i].Error)
	}
	return nil
}

// damagedFiles returns, for people, which files miss the bytes of a blob.
func damagedFiles(d *vfs.DamagedBlob) string {
	switch {
	case d.Aside:
		return "none: set aside until it is released"
	case len(d.Files) == 0:
		return "none that is known"
	}
	return strings.Join(d.Files, " ")
}

func damagedPlace(d *vfs.DamagedBlob) string {
	if d.Detail == "" {
		return d.Path
	}
	return d.Path + " (" + d.Detail + ")"
}
