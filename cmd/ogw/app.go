package main

import "github.com/urfave/cli/v2"

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
			userCommand(env), groupCommand(env), roleCommand(env), policyCommand(env), bucketCommand(env), exportCommand(env), lockCommand(env),
			quarantineCommand(env), auditCommand(env), backupCommand(env), restoreCommand(env), migrateCommand(env),
			statusCommand(env), configCommand(env), versionCommand(env),
		},
	}
	finish(app.Commands, usage)
	return app
}

// finish makes wrong flags of every command usage errors, and keeps "(default:
// false)" out of its help. An argument "help" or "h" is a name, as in "ogw user add h":
// the library would print the help instead, and report success.
func finish(commands []*cli.Command, f cli.OnUsageErrorFunc) {
	for _, c := range commands {
		c.OnUsageError, c.HideHelpCommand = f, true
		for _, flag := range c.Flags {
			if b, ok := flag.(*cli.BoolFlag); ok {
				b.DisableDefaultText = true
			}
		}
		finish(c.Subcommands, f)
	}
}
