package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"ogw/cmd/ogw/config"
)

// command is one command's life: flags are read, checked, and then it runs.
type command interface {
	ParseFlags(c *cli.Context) error
	Validate() error
	Run(ctx context.Context) error
}

// operations makes the subcommands of a command, one for each operation on
// what it is about.
func operations(make func(op string) command) func(op, usage, args string, flags ...cli.Flag) *cli.Command {
	return func(op, usage, args string, flags ...cli.Flag) *cli.Command {
		return &cli.Command{
			Name: op, Usage: usage, ArgsUsage: args, Flags: append(commonFlags(), flags...),
			Action: action(func() command { return make(op) }),
		}
	}
}

// action runs a fresh command. What goes wrong before Run is the user's mistake.
func action(make func() command) cli.ActionFunc {
	return func(c *cli.Context) error {
		cmd := make()
		if err := cmd.ParseFlags(c); err != nil {
			return &exitError{exitUsage, err}
		}
		if err := cmd.Validate(); err != nil {
			return &exitError{exitUsage, err}
		}
		return cmd.Run(c.Context)
	}
}

// noCommand answers "ogw" with the help and "ogw X" with an error; the same
// for commands that have subcommands.
func noCommand(c *cli.Context, name string, commands []*cli.Command) error {
	if c.Args().Present() {
		var known []string
		for _, x := range commands {
			known = append(known, x.Name)
		}
		word := c.Args().First()
		return usageError("there is no command %q%s; %s --help lists them", word, config.Suggestion(word, known), name)
	}
	if name == c.App.Name {
		return cli.ShowAppHelp(c)
	}
	return cli.ShowSubcommandHelp(c)
}

// noSubcommand is noCommand for a command.
func noSubcommand(c *cli.Context) error {
	return noCommand(c, c.Command.HelpName, c.Command.Subcommands)
}
