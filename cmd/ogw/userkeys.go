package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"ogw/httpapi/admin"
)

// userKeyCommand has a subcommand for each operation on the keys of a user.
func userKeyCommand(env *environment) *cli.Command {
	sub := operations(func(op string) command { return &userKey{common: common{env: env}, op: op} })
	return &cli.Command{
		Name: "key", Usage: "give a user a further key, or take one away",
		Action: noSubcommand,
		Subcommands: []*cli.Command{
			sub("add", "add an access key for another program and print it, once", "NAME", accessKeyFlag(), secretKeyFlag()),
			sub("remove", "end an access key; the user's others stay", "NAME KEY"),
		},
	}
}

func accessKeyFlag() cli.Flag {
	return &cli.StringFlag{Name: "access-key", Usage: "take this access key `ID` instead of a new one"}
}

func secretKeyFlag() cli.Flag {
	return &cli.StringFlag{Name: "secret-key", Usage: "the `SECRET` of --access-key"}
}

// userKey is one operation on the keys of a user.
type userKey struct {
	common
	op   string
	name string
	key  string // to be removed
	add  admin.AddKey
}

// ParseFlags implements command.
func (k *userKey) ParseFlags(c *cli.Context) (err error) {
	if k.op == "remove" {
		k.name, k.key, err = twoArgs(c, "the user's name", "the access key")
	} else {
		k.name, err = oneArg(c, "the user's name")
	}
	if err != nil {
		return err
	}
	k.add = admin.AddKey{AccessKey: c.String("access-key"), SecretKey: c.String("secret-key")}
	return k.common.ParseFlags(c)
}

// Run implements command.
func (k *userKey) Run(ctx context.Context) error {
	return k.with(ctx, func(s *session) error {
		if k.op == "add" {
			made, err := s.AddKey(ctx, k.name, k.add)
			return k.printSecret(made, err)
		}
		if _, err := s.RemoveKey(ctx, k.name, k.key); err != nil {
			return err
		}
		if k.json {
			return k.printJSON(map[string]string{"removed": k.key})
		}
		k.printf("access key %s of user %s is removed\n", k.key, k.name)
		return nil
	})
}
