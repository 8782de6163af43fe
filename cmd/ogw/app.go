package main

import (
	"context"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"ogw/cmd/ogw/config"
)

const description = `One namespace, through S3, REST, NFS and FUSE at once.

   ogw serve                   serve S3, REST and NFS on loopback over ./ogw-data
   ogw mount /mnt              mount the same files here
   ogw whereis bucket/path     who holds the bytes of an object

Commands talk to the process that serves the data folder, if there is one, and
open the folder themselves if not. Exit codes: 1 failure, 2 wrong arguments or
configuration, 3 not found, 4 problems found by check, 5 data folder in use.`

// newApp returns all commands.
func newApp(env *environment) *cli.App {
	usage := func(_ *cli.Context, err error, _ bool) error { return &exitError{exitUsage, err} }
	app := &cli.App{
		Name:            "ogw",
		Usage:           "a gateway in front of an object storage cluster",
		Description:     description,
		HideVersion:     true, // it is a command
		HideHelpCommand: true,
		Suggest:         true,
		// A value may hold commas: --set, -o.
		DisableSliceFlagSeparator: true,
		Writer:                    env.stdout,
		ErrWriter:                 env.stderr,
		OnUsageError:              usage,
		ExitErrHandler:            func(*cli.Context, error) {}, // run handles all
		CommandNotFound:           nil,
		Action:                    func(c *cli.Context) error { return noCommand(c, "ogw", c.App.Commands) },
		Commands: []*cli.Command{
			serveCommand(env), mountCommand(env), umountCommand(env), stopCommand(env),
			whereisCommand(env), purgeCommand(env), checkCommand(env),
			userCommand(env), bucketCommand(env), exportCommand(env), lockCommand(env),
			quarantineCommand(env), auditCommand(env), backupCommand(env), restoreCommand(env),
			statusCommand(env), configCommand(env), versionCommand(env),
		},
	}
	finish(app.Commands, usage)
	return app
}

// finish makes wrong flags of every command usage errors, and keeps "(default:
// false)" out of its help.
func finish(commands []*cli.Command, f cli.OnUsageErrorFunc) {
	for _, c := range commands {
		c.OnUsageError = f
		for _, flag := range c.Flags {
			if b, ok := flag.(*cli.BoolFlag); ok {
				b.DisableDefaultText = true
			}
		}
		finish(c.Subcommands, f)
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

// familiar turns what people type out of habit into our commands: help of a
// command, and the version as a flag.
func familiar(args []string) []string {
	if len(args) < 2 {
		return args
	}
	switch args[1] {
	case "help":
		return append(append(args[:1:1], args[2:]...), "--help")
	case "--version", "-version", "-v", "-V":
		return append(append(args[:1:1], "version"), args[2:]...)
	}
	return args
}

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

// permute moves flags before the arguments, where the flag package wants
// them: people write "ogw whereis bucket/path --json". Behind "--" nothing
// is a flag. Flags before the command move behind it.
func permute(app *cli.App, args []string) []string {
	if len(args) == 0 {
		return args
	}
	out, flags, rest := args[:1:1], []string(nil), args[1:]
	known, commands := commonFlags(), app.Commands
	var words []string
	for len(rest) > 0 {
		arg := rest[0]
		rest = rest[1:]
		if arg == "--" {
			words = append(append(words, arg), rest...)
			break
		}
		if strings.HasPrefix(arg, "-") && arg != "-" {
			flags = append(flags, arg)
			if takesValue(known, arg) && len(rest) > 0 {
				flags = append(flags, rest[0])
				rest = rest[1:]
			}
			continue
		}
		i := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.HasName(arg) })
		if i < 0 {
			commands = nil
			words = append(words, arg)
			continue
		}
		out = append(out, arg)
		known = append(known, commands[i].Flags...)
		commands = commands[i].Subcommands
	}
	return append(append(out, flags...), words...)
}

// takesValue tells whether arg is a flag whose value is the next argument.
func takesValue(known []cli.Flag, arg string) bool {
	name := strings.TrimLeft(arg, "-")
	if strings.Contains(name, "=") {
		return false
	}
	for _, f := range known {
		if slices.Contains(f.Names(), name) {
			doc, ok := f.(cli.DocGenerationFlag)
			return ok && doc.TakesValue()
		}
	}
	return false
}
