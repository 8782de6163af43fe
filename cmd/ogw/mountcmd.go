package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"ogw/httpapi/admin"
)

// mount mounts the namespace.
type mount struct {
	common
	m admin.Mount
}

func mountCommand(env *environment) *cli.Command {
	return &cli.Command{
		Name: "mount", Usage: "mount the namespace, or a directory of it, with FUSE", ArgsUsage: "DIR",
		Description: "If a process serves the data folder, it makes the mount and this command returns.\nElse this command opens the folder and serves the mount until Ctrl-C or umount.",
		Flags: append(commonFlags(),
			&cli.StringFlag{Name: "subtree", Usage: "show only this `PATH` of the namespace, such as a bucket"},
			&cli.BoolFlag{Name: "read-only", Usage: "refuse changes"},
			&cli.BoolFlag{Name: "allow-other", Usage: "let other users in"},
			&cli.BoolFlag{Name: "nonempty", Usage: "mount over a folder with entries"},
			&cli.BoolFlag{Name: "writeback", Usage: "let the kernel gather small writes; for files that nobody else changes"}),
		Action: action(func() command { return &mount{common: common{env: env}} }),
	}
}

// ParseFlags implements command.
func (m *mount) ParseFlags(c *cli.Context) error {
	dir, err := oneArg(c, "the folder to mount at")
	if err != nil {
		return err
	}
	m.m = admin.Mount{
		Subtree: c.String("subtree"), ReadOnly: c.Bool("read-only"), AllowOther: c.Bool("allow-other"),
		NonEmpty: c.Bool("nonempty"), Writeback: c.Bool("writeback"),
	}
	if m.m.Dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	return m.common.ParseFlags(c)
}

// Run implements command.
func (m *mount) Run(ctx context.Context) error {
	s, err := m.dial(ctx)
	if errors.Is(err, admin.ErrNotRunning) {
		return m.serve(ctx)
	}
	if err != nil {
		return err
	}
	if err := s.Mount(ctx, m.m); err != nil {
		return err
	}
	return m.done("%s is mounted by the process that serves %s\n", m.m.Dir, m.cfg.Cluster.Dir)
}

// serve makes the mount in this process.
func (m *mount) serve(ctx context.Context) error {
	m.cfg.Gateways = nil
	log, access := m.logs()
	p, err := wire(ctx, m.cfg, log, access)
	if err != nil {
		return err
	}
	ctx, release := signals(ctx, log)
	defer release()
	server, err := p.mounts.add(ctx, m.m)
	if err != nil {
		return errors.Join(err, p.close())
	}
	go func() {
		server.Wait()
		p.Stop()
	}()
	if err := m.done("%s is mounted; Ctrl-C unmounts\n", m.m.Dir); err != nil {
		return errors.Join(err, p.close())
	}
	return p.run(ctx)
}

func (m *mount) done(format string, args ...any) error {
	if m.json {
		return m.printJSON(m.m)
	}
	m.printf(format, args...)
	return nil
}

// umount ends a mount.
type umount struct {
	common
	path string
	lazy bool
}

func umountCommand(env *environment) *cli.Command {
	return &cli.Command{
		Name: "umount", Aliases: []string{"unmount"}, Usage: "end a mount, also a dead one that a crash left", ArgsUsage: "DIR",
		Flags:  append(commonFlags(), &cli.BoolFlag{Name: "lazy", Usage: "take a busy mount out of the tree at once"}),
		Action: action(func() command { return &umount{common: common{env: env}} }),
	}
}

// ParseFlags implements command.
func (u *umount) ParseFlags(c *cli.Context) error {
	dir, err := oneArg(c, "the folder that is mounted at")
	if err != nil {
		return err
	}
	u.lazy = c.Bool("lazy")
	if u.path, err = filepath.Abs(dir); err != nil {
		return err
	}
	return u.common.ParseFlags(c)
}

// Run implements command. The process that made the mount is asked first;
// a mount of another process, or of none any more, is left to the kernel.
func (u *umount) Run(ctx context.Context) error {
	s, err := u.dial(ctx)
	if err == nil {
		err = s.Umount(ctx, u.path, u.lazy)
	}
	var remote *admin.Error
	if errors.Is(err, admin.ErrNotRunning) || errors.As(err, &remote) && remote.Status == 404 {
		err = kernelUnmount(u.path, u.lazy)
	}
	if err != nil {
		return err
	}
	if u.json {
		return u.printJSON(map[string]string{"unmounted": u.path})
	}
	u.printf("%s is unmounted\n", u.path)
	return nil
}

func kernelUnmount(dir string, lazy bool) error {
	if !mountedHere(dir) {
		return &exitError{exitNotFound, fmt.Errorf("no ogw mount is at %s", dir)}
	}
	flags, args := 0, []string{"-u", dir}
	if lazy {
		flags, args = unix.MNT_DETACH, []string{"-u", "-z", dir}
	}
	err := unix.Unmount(dir, flags)
	if errors.Is(err, unix.EPERM) {
		var out []byte
		if out, err = exec.Command("fusermount3", args...).CombinedOutput(); err != nil {
			err = errors.New(strings.TrimSpace(string(out)))
		}
	}
	if err != nil {
		return fmt.Errorf("unmount %s: %w", dir, err)
	}
	return nil
}

// mountedHere tells whether a file system of ours is mounted at dir.
func mountedHere(dir string) bool {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return false
	}
	for line := range strings.SplitSeq(string(b), "\n") {
		// ID parent major:minor root DIR options … - TYPE source options
		f := strings.Fields(line)
		if len(f) > 4 && unescapeMount(f[4]) == dir && strings.Contains(line, " - fuse.ogw ") {
			return true
		}
	}
	return false
}

// unescapeMount decodes the octal escapes of mountinfo.
func unescapeMount(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
