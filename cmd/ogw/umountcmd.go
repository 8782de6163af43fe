package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"ogw/cmd/ogw/mounts"
	"ogw/fusemount"
	"ogw/httpapi/admin"
)

// umount ends a mount.
type umount struct {
	common
	path string
	lazy bool
}

const umountDescription = `The mount does not come back with the next server. Without a server, name the data
folder, as for all commands: there is written which mounts come back.

With --lazy, the path is free at once, and programs go on with what they have open
until they close it; if no server serves the mount, they wait for the next one that does.`

func umountCommand(env *environment) *cli.Command {
	return &cli.Command{
		Name: "umount", Aliases: []string{"unmount"}, Usage: "end a mount, with a server or without, also a dead one", ArgsUsage: "DIR",
		Description: umountDescription,
		Flags:       append(commonFlags(), &cli.BoolFlag{Name: "lazy", Usage: "take a busy mount out of the tree at once; programs keep what they have open of it"}),
		Action:      action(func() command { return &umount{common: common{env: env}} }),
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

// Run implements command. A process that is about to serve the folder, or to end,
// is waited for.
func (u *umount) Run(ctx context.Context) error {
	// Whoever serves the mount may end with it before it answers.
	there := fusemount.IsMount(u.path)
	for begin := time.Now(); ; time.Sleep(mountPoll) {
		err := u.try(ctx, &there)
		var remote *admin.Error
		again := errors.Is(err, mounts.ErrServed) || errors.As(err, &remote) && remote.Status == http.StatusServiceUnavailable
		switch {
		case again && time.Since(begin) < mountWait && ctx.Err() == nil:
			continue
		case err != nil:
			return err
		case u.json:
			return u.printJSON(map[string]string{"unmounted": u.path})
		}
		u.printf("%s is unmounted\n", u.path)
		return nil
	}
}

// try asks the process that serves the folder; a mount of another process, or of
// none any more, is left to the kernel. there reports whether the mount was, or that it
// would have come back.
func (u *umount) try(ctx context.Context, there *bool) error {
	err := u.ask(ctx)
	absent := isNotFound(err)
	if !absent && !errors.Is(err, admin.ErrNotRunning) {
		return err
	}
	if fusemount.IsMount(u.path) {
		if err := kernelUnmount(u.path, u.lazy); err != nil {
			return err
		}
		*there = true
	}
	switch {
	case absent && *there: // it may still expect the mount
		if err = u.ask(ctx); isNotFound(err) {
			return nil
		}
		return err
	case !absent:
		// The mount comes first: whoever starts now makes none, or is seen here.
		found, err := mounts.Forget(u.cfg.Cluster.Dir, resolved(u.path))
		if err != nil {
			return err
		}
		*there = *there || found
	}
	if !*there {
		return &exitError{exitNotFound, fmt.Errorf("no ogw mount is at %s", u.path)}
	}
	return nil
}

// resolved is a path without links, where that can be told: the record has it of a folder
// at which nothing is mounted.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// ask has the process that serves the folder end the mount. A process that served nothing
// else ends with it, and is waited for: the folder may be copied or removed next.
func (u *umount) ask(ctx context.Context) error {
	s, err := u.dial(ctx)
	if err != nil {
		return err
	}
	done, err := s.Umount(ctx, u.path, u.lazy)
	if err != nil {
		return err
	}
	if done.Ends && u.remote == "" && !u.lazy && !hasEnded(ctx, u.cfg.Cluster.Dir, done.PID, mountWait) {
		fmt.Fprintf(u.env.stderr, "process %d, which served %s, still writes; it ends when that is done\n", done.PID, u.path)
	}
	return nil
}

func isNotFound(err error) bool {
	var remote *admin.Error
	return errors.As(err, &remote) && remote.Status == http.StatusNotFound
}

func kernelUnmount(dir string, lazy bool) error {
	if err := fusemount.Uncovered(dir); err != nil {
		return fmt.Errorf("unmount %s: %w", dir, err)
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
		return fmt.Errorf("unmount %s: %w: in use by %s; %s", dir, err, fusemount.Users(dir), mounts.LazyHint)
	}
	if err != nil {
		return fmt.Errorf("unmount %s: %w", dir, err)
	}
	return nil
}
