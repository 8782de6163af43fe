package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"ogw/httpapi/admin"
)

// roleCommand has a subcommand for each operation.
func roleCommand(env *environment) *cli.Command {
	sub := operations(func(op string) command { return &role{common: common{env: env}, op: op} })
	trust := &cli.StringFlag{Name: "trust", Usage: "policy in `FILE` that says who may assume it, - for standard input", Required: true}
	return &cli.Command{
		Name: "role", Usage: "add, list, show and remove roles, and end their sessions",
		Action: noSubcommand,
		Subcommands: []*cli.Command{
			sub("add", "add a role", "NAME", trust,
				&cli.DurationFlag{Name: "max-session", Usage: "the longest session, 1h to 12h", Value: time.Hour}),
			sub("list", "list all roles", ""),
			sub("show", "show a role and who may assume it", "NAME"),
			sub("trust", "replace who may assume a role", "NAME", trust),
			sub("revoke", "end all sessions of a role that were begun before now", "NAME"),
			sub("remove", "remove a role and what it holds; its sessions end", "NAME"),
		},
	}
}

// role is one operation on roles.
type role struct {
	common
	op  string
	add admin.AddRole
}

// maxDocument bounds a policy that is read from a file: what the admin API takes.
const maxDocument = 48 << 10

// document reads a policy from a file, or from standard input.
func document(name string) (json.RawMessage, error) {
	f := os.Stdin
	if name != "-" {
		var err error
		if f, err = os.Open(name); err != nil {
			return nil, err
		}
		defer f.Close()
	}
	text, err := io.ReadAll(io.LimitReader(f, maxDocument+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > maxDocument:
		return nil, fmt.Errorf("%s has more than %d bytes", name, maxDocument)
	case !json.Valid(text):
		return nil, fmt.Errorf("%s is no JSON", name)
	}
	return text, nil
}

// ParseFlags implements command.
func (o *role) ParseFlags(c *cli.Context) (err error) {
	if o.op == "list" {
		return errors.Join(noArgs(c), o.common.ParseFlags(c))
	}
	if o.add.Name, err = oneArg(c, "the role's name"); err != nil {
		return err
	}
	if o.op == "add" || o.op == "trust" {
		if o.add.Trust, err = document(c.String("trust")); err != nil {
			return err
		}
	}
	o.add.MaxSession = int(c.Duration("max-session") / time.Second)
	return o.common.ParseFlags(c)
}

// Run implements command.
func (o *role) Run(ctx context.Context) error {
	return o.with(ctx, func(s *session) error {
		name := o.add.Name
		switch o.op {
		case "add":
			return o.show(s.AddRole(ctx, o.add))
		case "show":
			return o.show(s.Role(ctx, name))
		case "trust":
			return o.show(s.SetTrust(ctx, name, o.add.Trust))
		case "revoke":
			_, err := s.RevokeRole(ctx, name)
			return o.done(err, "revoked", name, "sessions of role "+name+" that were begun before now have ended")
		case "remove":
			_, err := s.RemoveRole(ctx, name)
			return o.done(err, "removed", name, "role "+name+" is removed")
		}
		return o.list(ctx, s)
	})
}

// done prints that something was done to what has a name.
func (o *common) done(err error, what, name, message string) error {
	switch {
	case err != nil:
		return err
	case o.json:
		return o.printJSON(map[string]string{what: name})
	}
	o.printf("%s\n", message)
	return nil
}

func (o *role) show(x admin.Role, err error) error {
	if err != nil {
		return err
	}
	if o.json {
		return o.printJSON(x)
	}
	o.printf("role         %s (uid %d)\nID           %s\nARN          %s\nmax session  %s\ntrust        %s\n", x.Name, x.UID, x.ID, x.ARN,
		time.Duration(x.MaxSession)*time.Second, x.Trust)
	return nil
}

func (o *role) list(ctx context.Context, s *session) error {
	roles, err := s.Roles(ctx)
	if err != nil {
		return err
	}
	if o.json {
		return o.printJSON(roles)
	}
	rows := [][]string{{"NAME", "ID", "UID", "MAX SESSION", "ARN"}}
	for _, x := range roles {
		rows = append(rows, []string{x.Name, x.ID, itoa(int64(x.UID)), (time.Duration(x.MaxSession) * time.Second).String(), x.ARN})
	}
	return o.table(rows)
}
