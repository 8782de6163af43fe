package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"ogw/cmd/ogw/config"
	"ogw/cmd/ogw/server"
)

// showConfig prints the effective configuration.
type showConfig struct {
	common
	secrets bool
}

func configCommand(env *environment) *cli.Command {
	return &cli.Command{
		Name: "config", Usage: "print the effective configuration, or test a file",
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

// testConfig checks a configuration file.
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

// Run implements command. Validate has found everything by now, but what only a process
// that serves needs.
func (t *testConfig) Run(context.Context) error {
	_, err := server.Keys(t.cfg)
	if err = errors.Join(err, auditFolder(t.cfg)); err != nil {
		return &exitError{exitUsage, wrongConfig(err)}
	}
	if t.json {
		return t.printJSON(map[string]any{"file": t.cfg.File, "ok": true})
	}
	t.printf("%s is right\n", t.cfg.File)
	return nil
}

// auditFolder returns why the file of the audit log cannot be in its folder. The data folder,
// and those that it is in, are made before it is opened.
func auditFolder(c *config.Config) error {
	a := &c.Audit
	if a.File == "" || !a.Admin && !a.Access && !a.Data {
		return nil
	}
	dir := filepath.Dir(a.File)
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) && isWithin(c.Cluster.Dir, dir) {
		return nil
	}
	if err == nil && !info.IsDir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		err = fmt.Errorf("audit.file: %w", err)
	}
	return err
}

// isWithin reports whether an absolute path is a folder, or within it.
func isWithin(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}
