package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"ogw/httpapi/admin"
	"ogw/vfs"
)

// bucketCommand has a subcommand for each operation.
func bucketCommand(env *environment) *cli.Command {
	sub := operations(func(op string) command { return &bucket{common: common{env: env}, op: op} })
	return &cli.Command{
		Name: "bucket", Usage: "add, list, set and remove buckets, and count what they hold",
		Action: noSubcommand,
		Subcommands: []*cli.Command{
			sub("add", "make a bucket", "NAME",
				&cli.StringFlag{Name: "owner", Usage: "`USER` who owns it, by name or ID", DefaultText: "the one that came with the store"}),
			sub("list", "list all buckets", ""),
			sub("show", "show a bucket and its settings", "NAME"),
			sub("set", "change settings of a bucket", "NAME",
				&cli.StringFlag{Name: "durability", Usage: "of changes through S3 and REST: `sync`, async, or default for that of the configuration"}),
			sub("remove", "remove an empty bucket", "NAME"),
			sub("usage", "count objects and bytes", "NAME"),
		},
	}
}

// bucket is one operation on buckets.
type bucket struct {
	common
	op  string
	add admin.AddBucket
	set admin.SetBucket
}

// ParseFlags implements command.
func (b *bucket) ParseFlags(c *cli.Context) (err error) {
	if b.op == "list" {
		return errors.Join(noArgs(c), b.common.ParseFlags(c))
	}
	if b.add.Name, err = oneArg(c, "the bucket's name"); err != nil {
		return err
	}
	b.add.Owner = c.String("owner")
	if b.op == "set" {
		d := c.String("durability")
		switch d {
		case "":
			return usageError("nothing to set; there is --durability")
		case "default":
			d = ""
		default:
			if _, err := vfs.ParseDurability(d); err != nil {
				return usageError("--durability %s: it is sync, async or default", d)
			}
		}
		b.set.Durability = &d
	}
	return b.common.ParseFlags(c)
}

// Run implements command.
func (b *bucket) Run(ctx context.Context) error {
	return b.with(ctx, func(s *session) error {
		switch b.op {
		case "add":
			made, err := s.AddBucket(ctx, b.add)
			return b.print(err, made, "bucket %s is made\n", b.add.Name)
		case "remove":
			err := s.RemoveBucket(ctx, b.add.Name)
			return b.print(err, map[string]string{"removed": b.add.Name}, "bucket %s is removed\n", b.add.Name)
		case "show":
			x, err := s.Bucket(ctx, b.add.Name)
			return b.print(err, x, "%s", bucketText(&x))
		case "set":
			x, err := s.SetBucket(ctx, b.add.Name, b.set)
			return b.print(err, x, "%s", bucketText(&x))
		case "usage":
			u, err := s.Usage(ctx, b.add.Name)
			return b.print(err, u, "%s: %d objects, %d bytes (%s)\n", u.Name, u.Objects, u.Bytes, bytesText(u.Bytes))
		}
		return b.list(ctx, s)
	})
}

// print shows a result in the form asked for.
func (b *bucket) print(err error, v any, format string, args ...any) error {
	if err != nil {
		return err
	}
	if b.json {
		return b.printJSON(v)
	}
	b.printf(format, args...)
	return nil
}

// bucketText shows a bucket to people.
func bucketText(x *admin.Bucket) string {
	from := ""
	if x.Inherited {
		from = " (of the configuration)"
	}
	return fmt.Sprintf("name        %s\nowner       %s\ncreated     %s\ndurability  %s%s\n",
		x.Name, ownerText(x), x.Created.Format(time.RFC3339), x.Durability, from)
}

func ownerText(x *admin.Bucket) string {
	if x.Owner == "" {
		return "uid " + itoa(int64(x.UID))
	}
	return x.Owner
}

func (b *bucket) list(ctx context.Context, s *session) error {
	buckets, err := s.Buckets(ctx)
	if err != nil {
		return err
	}
	if b.json {
		return b.printJSON(buckets)
	}
	rows := [][]string{{"NAME", "OWNER", "CREATED"}}
	for i := range buckets {
		x := &buckets[i]
		rows = append(rows, []string{x.Name, ownerText(x), x.Created.Format(time.RFC3339)})
	}
	return b.table(rows)
}
