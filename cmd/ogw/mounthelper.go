package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// helperNames are the names under which mount(8) calls us as its helper:
// links to this program in /sbin.
var helperNames = []string{"mount.ogw", "mount.fuse.ogw"}

// helperCall turns the command line of a mount helper into one of ogw mount:
//
//	mount.fuse.ogw SOURCE DIR [-sfnv] [-N namespace] [-o options] [-t type]
//	ogw SOURCE DIR -o options     as mount.fuse3 calls for -t fuse.ogw
//
// Other command lines come back as they are.
func helperCall(app *cli.App, args []string) ([]string, error) {
	if len(args) == 0 {
		return args, nil
	}
	if !slices.Contains(helperNames, filepath.Base(args[0])) {
		isCommand := func(c *cli.Command) bool { return c.HasName(args[1]) }
		if len(args) < 5 || strings.HasPrefix(args[1], "-") || args[3] != "-o" || slices.ContainsFunc(app.Commands, isCommand) {
			return args, nil
		}
	}
	out := []string{args[0], "mount", "--helper"}
	var words []string
	for rest := args[1:]; len(rest) > 0; rest = rest[1:] {
		switch arg := rest[0]; {
		case arg == "-o" || arg == "-t" || arg == "-N":
			if len(rest) < 2 {
				return nil, fmt.Errorf("%s needs a value", arg)
			}
			if arg == "-N" {
				return nil, fmt.Errorf("mount -N %s: not supported; run mount within the namespace (nsenter)", rest[1])
			}
			if arg == "-o" {
				out = append(out, "-o", rest[1])
			}
			rest = rest[1:]
		case strings.HasPrefix(arg, "-") && strings.Trim(arg, "-sfnv") == "" && len(arg) > 1:
			if strings.Contains(arg, "s") {
				out = append(out, "--sloppy")
			}
			if strings.Contains(arg, "f") {
				out = append(out, "--fake")
			}
		case strings.HasPrefix(arg, "-"):
			return nil, fmt.Errorf("unknown option %s; %s SOURCE DIR [-sfnv] [-o options]", arg, filepath.Base(args[0]))
		default:
			words = append(words, arg)
		}
	}
	if len(words) != 2 {
		return nil, fmt.Errorf("%s takes a source and a folder to mount at", filepath.Base(args[0]))
	}
	return append(append(out, "--"), words...), nil
}
