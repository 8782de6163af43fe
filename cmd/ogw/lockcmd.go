package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"ogw/httpapi/admin"
)

// lockCommand has a subcommand for each operation.
func lockCommand(env *environment) *cli.Command {
	sub := operations(func(op string) command { return &locks{common: common{env: env}, op: op} })
	client := func(usage string) cli.Flag { return &cli.StringFlag{Name: "client", Usage: usage} }
	return &cli.Command{
		Name: "lock", Usage: "list who holds locks on files, and free those of a dead NFS client",
		Action: noSubcommand,
		Subcommands: []*cli.Command{
			sub("list", "list the locks that are held or waited for, of NFS clients, FUSE mounts and Go programs", "[PATH]",
				client("those of this `CLIENT` alone: an address or host name, or the directory of a mount")),
			sub("free", "end all locks of an NFS client that will not come back", "",
				client("`HOST` that holds them: address or name"),
				&cli.BoolFlag{Name: "force", Usage: "even if it is connected: its programs go on as if they held them"}),
		},
	}
}

// locks is one operation on locks.
type locks struct {
	common
	op   string
	list admin.LockFilter
	ask  admin.FreeLocks
}

// ParseFlags implements command.
func (l *locks) ParseFlags(c *cli.Context) (err error) {
	client := c.String("client")
	switch {
	case l.op == "list":
		if l.list = (admin.LockFilter{Path: c.Args().First(), Client: client}); c.Args().Len() > 1 {
			err = fmt.Errorf("%s takes one argument at the most: a file, or a directory for all below", c.Command.HelpName)
		}
	case client == "":
		err = fmt.Errorf("%s needs --client: whose locks are to be freed, as ogw lock list prints it", c.Command.HelpName)
	default:
		l.ask = admin.FreeLocks{Client: client, Force: c.Bool("force")}
		err = noArgs(c)
	}
	return errors.Join(err, l.common.ParseFlags(c))
}

// Run implements command.
func (l *locks) Run(ctx context.Context) error {
	return l.with(ctx, func(s *session) error {
		if l.op == "free" {
			return l.free(ctx, s)
		}
		list, err := s.ListLocks(ctx, l.list)
		if err != nil {
			return err
		}
		if l.json {
			return l.printJSON(list)
		}
		return l.print(list)
	})
}

func (l *locks) free(ctx context.Context, s *session) error {
	freed, err := s.FreeLocks(ctx, l.ask)
	if err != nil {
		return err
	}
	if l.json {
		return l.printJSON(freed)
	}
	for _, c := range freed.Clients {
		l.printf("%d %s and %d %s of %s (%s) through %s freed on gateway %s\n", c.Locks, plural(c.Locks, "lock"),
			c.Shares, plural(c.Shares, "share reservation"), c.Client, c.Host, c.Server, c.Gateway)
	}
	return nil
}

func (l *locks) print(list admin.LockList) error {
	if list.Grace {
		l.printf("A grace period is on: NFS clients take back the locks they held before the restart.\n")
	}
	rows := [][]string{{"DOOR", "CLIENT", "PID", "OWNER", "KIND", "TYPE", "RANGE", "STATE", "PATH"}}
	for i := range list.Locks {
		x := &list.Locks[i]
		client, pid, state, path := x.Client, "-", "held", x.Path
		if x.Host != "" {
			client += " (" + x.Host + ")"
		}
		if x.Server != "" {
			client += " through " + x.Server
		}
		if x.Gateway != "" {
			client = strings.TrimSpace(client + " at " + x.Gateway)
		}
		if client == "" {
			client = "-"
		}
		if x.PID != 0 {
			pid = itoa(int64(x.PID))
		}
		if x.Waiting {
			state = "waits"
		}
		if path == "" {
			path = "(unlinked, inode " + itoa(int64(x.Inode)) + ")"
		}
		rows = append(rows, []string{x.Door, client, pid, x.Owner, x.Kind, lockType(x), lockRange(x), state, path})
	}
	if err := l.table(rows); err != nil {
		return err
	}
	if list.More {
		l.printf("There are more; name a path or a --client.\n")
	}
	return nil
}

func lockType(x *admin.Lock) string {
	if x.Kind == "share" {
		return x.Type + ", deny " + x.Deny
	}
	return x.Type
}

// lockRange is the first and the last byte.
func lockRange(x *admin.Lock) string {
	switch {
	case x.Kind != "range":
		return "all"
	case x.Length == 0:
		return fmt.Sprintf("%d-end", x.Offset)
	}
	return fmt.Sprintf("%d-%d", x.Offset, x.Offset+x.Length-1)
}
