package main

import (
	"context"
	"errors"
	"runtime"

	"github.com/urfave/cli/v2"
)

// version is set by the linker (-X main.version=…).
var version = "development"

// showVersion prints the version.
type showVersion struct {
	common
}

func versionCommand(env *environment) *cli.Command {
	return &cli.Command{
		Name: "version", Usage: "print the version", Flags: commonFlags(),
		Action: action(func() command { return &showVersion{common{env: env}} }),
	}
}

// ParseFlags implements command.
func (v *showVersion) ParseFlags(c *cli.Context) error {
	return errors.Join(noArgs(c), v.common.ParseFlags(c))
}

// Validate implements command: the version shows whatever the configuration is.
func (v *showVersion) Validate() error { return nil }

// Run implements command.
func (v *showVersion) Run(context.Context) error {
	if v.json {
		return v.printJSON(map[string]string{
			"version": version, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
		})
	}
	v.printf("ogw %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}
