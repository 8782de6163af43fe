package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"ogw/fusemount"
	"ogw/httpapi/admin"
)

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
	if !fusemount.IsMount(dir) {
		return &exitError{exitNotFound, fmt.Errorf("no ogw mount is at %s", dir)}
	}
	flags, args := 0, []string{"-u", dir}
	if lazy {
		flags, args = unix.MNT_DETACH, []string{"-u", "-z", dir}
	}
	err := unix.Unmount(dir, flags)
	busy := errors.Is(err, unix.EBUSY)
	if errors.Is(err, unix.EPERM) {
		var out []byte
		if out, err = exec.Command("fusermount3", args...).CombinedOutput(); err != nil {
			err = errors.New(strings.TrimSpace(string(out)))
			busy = strings.Contains(strings.ToLower(err.Error()), "busy")
		}
	}
	if busy {
		return fmt.Errorf("unmount %s: %w: in use by %s; --lazy takes it out of the tree at once", dir, err, fusemount.Users(dir))
	}
	if err != nil {
		return fmt.Errorf("unmount %s: %w", dir, err)
	}
	return nil
}
