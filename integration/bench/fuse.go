package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ogw/integration/bench/fusebench"
	"ogw/integration/bench/noopfs"
)

// fuseSuite measures the mount beside a FUSE file system that stores nothing
// and beside a plain directory.
func fuseSuite(e *env) error {
	noop := filepath.Join(e.dir, "noop")
	if err := os.Mkdir(noop, 0o755); err != nil {
		return err
	}
	limit, err := noopfs.Mount(noop)
	if err != nil {
		return err
	}
	defer limit.Unmount()
	s, err := startServer(e)
	if err != nil {
		return err
	}
	defer s.stop()
	if err := s.client.createBucket(e.ctx, s.url("/bench"), ""); err != nil {
		return err
	}
	mnt, err := s.mount()
	if err != nil {
		return err
	}
	defer s.umount(mnt)
	list, err := fusebench.Measure([]string{filepath.Join(mnt, "bench"), noop, e.dir}, fusebench.DefaultScale())
	if err != nil {
		return err
	}
	for i, r := range list[0] {
		note := fmt.Sprintf("plain directory: %s", number(list[2][i].Rate))
		e.add(row{Name: "FUSE " + r.Name, Value: r.Rate, Unit: r.Unit,
			Limit: list[1][i].Rate, LimitName: "no-op FUSE", Target: fuseTarget(r.Name), Note: note})
	}
	return nil
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
