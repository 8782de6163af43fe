package main

import (
	"context"
	"errors"
	"runtime"

	"github.com/urfave/cli/v2"
)

// showConfig prints the effective configuration.
type showConfig struct {
	common
	secrets bool
}

func configCommand(env *environment) *cli.Command {
	return &cli.Command{
		Name: "config", Usage: "print the effective configuration, or test a file", HideHelpCommand: true,
		Description: "Weakest first: defaults, the file (--config), the environment (OGW_SECTION_KEY),\nflags (--set SECTION.KEY=VALUE, --s3, --rest, --nfs).",
		Flags: append(append(commonFlags(), listenFlags()...),
			&cli.BoolFlag{Name: "secrets", Usage: "print tokens too"}),
		Action: action(func() command { return &showConfig{common: common{env: env}} }),
		Subcommands: []*cli.Command{{
			Name: "test", Usage: "test a configuration file", ArgsUsage: "[FILE]", Flags: commonFlags(),
			Action: action(func() command { return &testConfig{common{env: env}} }),
		}},
	}
}

// ParseFlags implements command.
func (s *showConfig) ParseFlags(c *cli.Context) error {
	s.secrets = c.Bool("secrets")
	err := errors.Join(noArgs(c), s.common.ParseFlags(c))
	s.sources.Listen = listenOf(c)
	return err
}

// Run implements command.
func (s *showConfig) Run(context.Context) error {
	if s.json {
		return s.printJSON(s.cfg.Map(s.secrets))
	}
	return s.cfg.Write(s.env.stdout, s.secrets)
}

// testConfig says whether a file is right.
type testConfig struct {
	common
}

// ParseFlags implements command.
func (t *testConfig) ParseFlags(c *cli.Context) error {
	if err := t.common.ParseFlags(c); err != nil {
		return err
	}
	if c.Args().Len() > 1 {
		return errors.New("ogw config test takes one file")
	}
	if c.Args().Present() {
		t.sources.File = c.Args().First()
	}
	if t.sources.File == "" {
		return errors.New("name the file to test")
	}
	return nil
}

// Run implements command. Validate has found everything by now.
func (t *testConfig) Run(context.Context) error {
	if t.json {
		return t.printJSON(map[string]any{"file": t.cfg.File, "ok": true})
	}
	t.printf("%s is right\n", t.cfg.File)
	return nil
}

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
