package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

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

// takesValue reports whether arg is a flag whose value is the next argument.
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
