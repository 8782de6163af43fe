package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"ogw/httpapi/admin"
)

// stopPoll is how often commands look whether the process has ended.
const stopPoll = 50 * time.Millisecond

// stop ends the process that serves the data folder.
type stop struct {
	common
	wait time.Duration
}

func stopCommand(env *environment) *cli.Command {
	return &cli.Command{
		Name: "stop", Usage: "drain and stop the process that serves the data folder",
		Flags:  append(commonFlags(), &cli.DurationFlag{Name: "wait", Value: 3 * time.Minute, Usage: "`TIME` to wait for its end"}),
		Action: action(func() command { return &stop{common: common{env: env}} }),
	}
}

// ParseFlags implements command.
func (s *stop) ParseFlags(c *cli.Context) error {
	s.wait = c.Duration("wait")
	return errors.Join(noArgs(c), s.common.ParseFlags(c))
}

// Run implements command.
func (s *stop) Run(ctx context.Context) error {
	x, err := s.dial(ctx)
	if err != nil {
		return err
	}
	st, err := x.Status(ctx)
	if err != nil {
		return err
	}
	stay, back := []string{}, []string{}
	for i := range st.Mounts {
		switch m := &st.Mounts[i]; {
		case m.Survive:
			stay = append(stay, m.Dir)
		case m.Returns:
			back = append(back, m.Dir)
		}
	}
	if err := x.Stop(ctx); err != nil {
		return err
	}
	if s.remote == "" && !hasEnded(ctx, st.Dir, st.PID, s.wait) {
		return errors.New("the process still drains; it stops when that is done")
	}
	if s.json {
		return s.printJSON(map[string]any{"stopped": st.PID, "mounts_stay": stay, "mounts_return": back})
	}
	s.printf("process %d is stopped\n", st.PID)
	for _, dir := range stay {
		s.printf("%s stays: its programs wait for the next server; to end it: ogw umount --dir %s %s\n", dir, st.Dir, dir)
	}
	for _, dir := range back {
		s.printf("%s is unmounted until the next server mounts it again; to prevent that: ogw umount --dir %s %s\n", dir, st.Dir, dir)
	}
	return nil
}

// hasEnded reports whether a process of this machine that serves a folder ends within a time. Its socket goes
// when everything but the engine is closed, its number when that is closed too.
func hasEnded(ctx context.Context, folder string, pid int, wait time.Duration) bool {
	socket := filepath.Join(folder, admin.SocketName)
	for end := time.Now().Add(wait); alive(socket, pid); time.Sleep(stopPoll) {
		if time.Now().After(end) || ctx.Err() != nil {
			return false
		}
	}
	return true
}

func alive(socket string, pid int) bool {
	if _, err := os.Stat(socket); err == nil {
		return true
	}
	// A process that nobody has waited for yet keeps its number, but no program.
	_, err := os.Readlink(filepath.Join("/proc", itoa(int64(pid)), "exe"))
	return !errors.Is(err, os.ErrNotExist)
}
