package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"ogw/integration/testenv/cputime"
	"ogw/integration/tools/bench/fusebench"
	"ogw/integration/tools/bench/noopfs"
)

// fuseSuite measures mounts beside a FUSE file system that stores nothing and
// beside a plain directory. The first one's requests come through io_uring where
// the kernel can; the last one's through /dev/fuse, as those of the file system that
// stores nothing do.
func fuseSuite(e *env) error {
	noop, err := startNoop(e)
	if err != nil {
		return err
	}
	defer noop.stop()
	device, stop, err := startMount(e, "io_uring=off")
	if err != nil {
		return err
	}
	defer stop()
	targets := []fusebench.Target{device, {Dir: noop.dir, CPU: timeOf(noop.cmd.Process.Pid)}, {Dir: e.dir}}
	defer keepSwitch()()
	if ring, stop, err := startMount(e, "io_uring=on"); err != nil {
		fmt.Println("  only through /dev/fuse:", err)
	} else {
		defer stop()
		targets[0], targets = ring, append(targets, device)
	}
	list, err := fusebench.Measure(targets, fusebench.DefaultScale(), e.rowsWanted)
	if err != nil {
		return err
	}
	for i, r := range list[0] {
		limit, limitName := list[1][i], "no-op FUSE"
		note := fmt.Sprintf("CPU %.1f us (%.1f)  plain directory: %s", r.CPU, limit.CPU, number(list[2][i].Rate))
		if strings.HasPrefix(r.Name, fusebench.Durable) {
			limit, limitName = list[2][i], "plain directory"
			note = fmt.Sprintf("CPU %.1f us", r.CPU)
		}
		if len(list) > 3 {
			d := list[3][i]
			note += fmt.Sprintf("  /dev/fuse: %s, %.0f %%, CPU %.1f us", number(d.Rate), 100*d.Rate/limit.Rate, d.CPU)
		}
		e.add(row{Name: "FUSE " + r.Name, Value: r.Rate, Unit: r.Unit, CPU: r.CPU,
			Limit: limit.Rate, LimitName: limitName, LimitCPU: limit.CPU, Target: fuseTarget(r.Name), Note: note})
	}
	return nil
}

// startMount starts a server of its own for each mount: of two mounts that cannot
// share a superblock, one server keeps no names for the second.
func startMount(e *env, options string) (t fusebench.Target, stop func(), err error) {
	s, err := startServer(e)
	if err != nil {
		return t, nil, err
	}
	var mnt string
	if err = s.client.createBucket(e.ctx, s.url("/bench")); err == nil {
		mnt, err = s.mount("-o", options)
	}
	if err != nil {
		s.stop()
		return t, nil, err
	}
	pid := s.cmd.Process.Pid
	return fusebench.Target{Dir: filepath.Join(mnt, "bench"), CPU: timeOf(pid), PID: pid}, func() {
		s.umount(mnt)
		s.stop()
	}, nil
}

// timeOf returns what a process has spent.
func timeOf(pid int) func() (time.Duration, error) {
	return func() (time.Duration, error) { return cputime.Process(pid) }
}

// keepSwitch returns a function that leaves the kernel's offer of FUSE over
// io_uring to others as it was.
func keepSwitch() func() {
	const file = "/sys/module/fuse/parameters/enable_uring"
	was, err := os.ReadFile(file)
	if err != nil {
		return func() {} // the kernel has none
	}
	return func() { _ = os.WriteFile(file, was, 0) }
}

// The no-op file system is served by a process of its own, as ogw is: the
// command itself, started with -noop-fuse DIR. It prints a line when it is
// mounted, and unmounts when its input ends.

type noopServer struct {
	dir string
	cmd *exec.Cmd
	in  io.Closer
}

func startNoop(e *env) (*noopServer, error) {
	n := &noopServer{dir: filepath.Join(e.dir, "noop")}
	if err := os.Mkdir(n.dir, 0o755); err != nil {
		return nil, err
	}
	var err error
	if n.cmd, n.in, _, err = startSelf("-noop-fuse", n.dir); err != nil {
		return nil, fmt.Errorf("no-op file system: %w", err)
	}
	return n, nil
}

func (n *noopServer) stop() {
	n.in.Close()
	_ = n.cmd.Wait() // it has nothing to lose
	_ = os.Remove(n.dir)
}

func serveNoop(dir string) error {
	s, err := noopfs.Mount(dir)
	if err != nil {
		return err
	}
	fmt.Println("mounted")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return errors.Join(err, fusebench.Unmount(s.Unmount))
	}
	return fusebench.Unmount(s.Unmount)
}

// fuseTarget is the share of the no-op file system that we want. Files that
// are closed with bytes in them wait for the disk, which the no-op has not.
func fuseTarget(name string) float64 {
	switch {
	case strings.HasPrefix(name, "create 4 KiB"), strings.HasPrefix(name, "untar"):
		return 0
	case strings.Contains(name, "sequential"):
		return 0.8
	default:
		return 0.7
	}
}

// surviveSuite measures what the option survive costs: a mount with it beside one
// without, of two servers, both through /dev/fuse.
func surviveSuite(e *env) error {
	var targets []fusebench.Target
	for _, options := range []string{"survive", "io_uring=off"} {
		t, stop, err := startMount(e, options)
		if err != nil {
			return err
		}
		defer stop()
		targets = append(targets, t)
	}
	list, err := fusebench.Measure(targets, fusebench.DefaultScale(), e.rowsWanted)
	if err != nil {
		return err
	}
	for i, r := range list[0] {
		without := list[1][i]
		e.add(row{Name: "survive " + r.Name, Value: r.Rate, Unit: r.Unit, CPU: r.CPU,
			Limit: without.Rate, LimitName: "without the option", LimitCPU: without.CPU,
			Note: fmt.Sprintf("CPU %.1f us (%.1f)", r.CPU, without.CPU)})
	}
	return nil
}
