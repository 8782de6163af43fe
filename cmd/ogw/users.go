package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"ogw/httpapi/admin"
)

// userCommand has a subcommand for each operation.
func userCommand(env *environment) *cli.Command {
	sub := operations(func(op string) command { return &user{common: common{env: env}, op: op} })
	return &cli.Command{
		Name: "user", Usage: "add, list, rename and remove users, and change their keys",
		Action: noSubcommand,
		Subcommands: []*cli.Command{
			sub("add", "add a user and print the access key, once", "NAME",
				&cli.Int64Flag{Name: "uid", Usage: "`NUMBER` that owns what the user writes", DefaultText: "one that no user has or had"},
				&cli.Int64Flag{Name: "gid", Usage: "`NUMBER` of its group", DefaultText: "the uid"},
				&cli.BoolFlag{Name: "inherit", Usage: "take the --uid of a removed user, with what it owns"},
				&cli.BoolFlag{Name: "administrator", Usage: "may do everything"},
				&cli.StringSliceFlag{Name: "may-read", Usage: "`BUCKET[/PREFIX]` that the user may list and read, and nothing else; several times for several"},
				accessKeyFlag(), secretKeyFlag()),
			sub("list", "list all users", ""),
			sub("rename", "give a user another name; keys, grants and files stay", "OLD NEW"),
			sub("remove", "remove a user and the keys", "NAME"),
			sub("rotate", "replace a user's keys by a new one and print it, once", "NAME",
				&cli.BoolFlag{Name: "keep", Usage: "leave the old keys valid"}),
			userKeyCommand(env),
		},
	}
}

// user is one operation on users.
type user struct {
	common
	op   string
	add  admin.AddUser
	keep bool
	to   string // new name
}

// ParseFlags implements command.
func (u *user) ParseFlags(c *cli.Context) (err error) {
	if u.op == "list" {
		return errors.Join(noArgs(c), u.common.ParseFlags(c))
	}
	if u.op == "rename" {
		u.add.Name, u.to, err = twoArgs(c, "the user's name", "the new one")
	} else {
		u.add.Name, err = oneArg(c, "the user's name")
	}
	if err != nil {
		return err
	}
	u.add.Inherit = c.Bool("inherit")
	u.keep = c.Bool("keep")
	u.add.Admin = c.Bool("administrator")
	u.add.MayRead = c.StringSlice("may-read")
	u.add.AccessKey, u.add.SecretKey = c.String("access-key"), c.String("secret-key")
	if u.op == "add" {
		var e1, e2 error
		u.add.UID, e1 = idFlag(c, "uid")
		u.add.GID, e2 = idFlag(c, "gid")
		if err := errors.Join(e1, e2); err != nil {
			return err
		}
	}
	return u.common.ParseFlags(c)
}

func idFlag(c *cli.Context, name string) (*uint32, error) {
	n := c.Int64(name)
	if !c.IsSet(name) {
		return nil, nil
	}
	if n < 0 || n >= 1<<32-1 {
		return nil, fmt.Errorf("--%s %d is not within 0 and %d", name, n, uint32(1<<32-2))
	}
	id := uint32(n)
	return &id, nil
}

// Run implements command.
func (u *user) Run(ctx context.Context) error {
	return u.with(ctx, func(s *session) error {
		switch u.op {
		case "add":
			made, err := s.AddUser(ctx, u.add)
			return u.printSecret(made, err)
		case "rotate":
			rotated, err := s.Rotate(ctx, u.add.Name, u.keep)
			return u.printSecret(rotated, err)
		case "rename":
			renamed, err := s.RenameUser(ctx, u.add.Name, u.to)
			return u.printRenamed(renamed, err)
		case "remove":
			if err := s.RemoveUser(ctx, u.add.Name); err != nil {
				return err
			}
			if u.json {
				return u.printJSON(map[string]string{"removed": u.add.Name})
			}
			u.printf("user %s is removed\n", u.add.Name)
			return nil
		}
		return u.list(ctx, s)
	})
}

// printSecret shows a new key: it is the only time.
func (o *common) printSecret(made admin.User, err error) error {
	if err != nil {
		return err
	}
	if o.json {
		return o.printJSON(made)
	}
	for _, k := range made.Keys {
		if k.Secret != "" {
			o.printf("user        %s (uid %d, gid %d)\nID          %s\naccess key  %s\nsecret key  %s\n",
				made.Name, made.UID, made.GID, made.ID, k.ID, k.Secret)
		}
	}
	return nil
}

func (u *user) printRenamed(renamed admin.User, err error) error {
	if err != nil {
		return err
	}
	if u.json {
		return u.printJSON(renamed)
	}
	u.printf("user %s is %s now\n", u.add.Name, renamed.Name)
	return nil
}

func (u *user) list(ctx context.Context, s *session) error {
	users, err := s.Users(ctx)
	if err != nil {
		return err
	}
	if u.json {
		return u.printJSON(users)
	}
	rows := [][]string{{"NAME", "ID", "UID", "GID", "ROLE", "ACCESS KEYS"}}
	for _, x := range users {
		role := "user"
		if x.Admin {
			role = "administrator"
		}
		var keys []string
		for _, k := range x.Keys {
			keys = append(keys, k.ID+" ("+k.Created.Format(time.DateOnly)+")")
		}
		rows = append(rows, []string{x.Name, x.ID, itoa(int64(x.UID)), itoa(int64(x.GID)), role, strings.Join(keys, ", ")})
	}
	return u.table(rows)
}
