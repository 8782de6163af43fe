package main

import (
	"context"
	"errors"
	"strings"

	"github.com/urfave/cli/v2"

	"ogw/httpapi/admin"
)

// groupCommand has a subcommand for each operation.
func groupCommand(env *environment) *cli.Command {
	sub := operations(func(op string) command { return &group{common: common{env: env}, op: op} })
	return &cli.Command{
		Name: "group", Usage: "add, list and remove groups of users, and change who is in them",
		Action: noSubcommand,
		Subcommands: []*cli.Command{
			sub("add", "add a group", "NAME"),
			sub("list", "list all groups and their users", ""),
			sub("join", "put a user into a group", "NAME USER"),
			sub("leave", "take a user out of a group", "NAME USER"),
			sub("remove", "remove a group without users and policies", "NAME"),
		},
	}
}

// group is one operation on groups.
type group struct {
	common
	op         string
	name, user string
}

// ParseFlags implements command.
func (o *group) ParseFlags(c *cli.Context) (err error) {
	switch o.op {
	case "list":
		err = noArgs(c)
	case "join", "leave":
		o.name, o.user, err = twoArgs(c, "the group's name", "the user's")
	default:
		o.name, err = oneArg(c, "the group's name")
	}
	return errors.Join(err, o.common.ParseFlags(c))
}

// Run implements command.
func (o *group) Run(ctx context.Context) error {
	return o.with(ctx, func(s *session) error {
		switch o.op {
		case "add":
			return o.show(s.AddGroup(ctx, o.name))
		case "join", "leave":
			return o.show(s.SetMember(ctx, o.name, o.user, o.op == "join"))
		case "remove":
			_, err := s.RemoveGroup(ctx, o.name)
			return o.done(err, "removed", o.name, "group "+o.name+" is removed")
		}
		list, err := s.Groups(ctx)
		if err != nil {
			return err
		}
		if o.json {
			return o.printJSON(list)
		}
		rows := [][]string{{"NAME", "ID", "USERS"}}
		for _, g := range list {
			rows = append(rows, []string{g.Name, g.ID, strings.Join(g.Users, ", ")})
		}
		return o.table(rows)
	})
}

func (o *group) show(g admin.Group, err error) error {
	if err != nil {
		return err
	}
	if o.json {
		return o.printJSON(g)
	}
	o.printf("group  %s\nID     %s\nusers  %s\n", g.Name, g.ID, strings.Join(g.Users, ", "))
	return nil
}
