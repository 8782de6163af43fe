package fusebench

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"ogw/cluster/local"
	"ogw/fusemount"
	"ogw/integration/tools/bench/noopfs"
	"ogw/vfs"
)

// FUSE measures an ogw mount over a fresh embedded engine below base, the
// no-op file system, and base itself, in one run, and prints the ratios.
func FUSE(ctx context.Context, w io.Writer, base string, s Scale, log *slog.Logger) (err error) {
	work, err := os.MkdirTemp(base, "ogw-fusebench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	noop, err := mountPoint(work, "noop")
	if err != nil {
		return err
	}
	limit, err := noopfs.Mount(noop)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, Unmount(limit.Unmount)) }()
	return measureOwn(ctx, w, work, noop, s, log)
}

func mountPoint(work, name string) (string, error) {
	dir := filepath.Join(work, name)
	return dir, os.Mkdir(dir, 0o755)
}

// measureOwn mounts ogw and measures all three.
func measureOwn(ctx context.Context, w io.Writer, work, noop string, s Scale, log *slog.Logger) (err error) {
	c, err := local.Open(ctx, local.Options{Dir: filepath.Join(work, "store"), Logger: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	fs, err := vfs.Open(ctx, c, vfs.Config{Logger: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fs.Close(ctx)) }()
	dir, err := mountPoint(work, "ogw")
	if err != nil {
		return err
	}
	server, err := fusemount.Mount(fs, dir, fusemount.Options{AllowOther: true, Logger: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, Unmount(server.Unmount)) }()
	bucket, err := mountPoint(dir, "bench")
	if err != nil {
		return err
	}
	list, err := Measure([]Target{{Dir: bucket}, {Dir: noop}, {Dir: work}}, s, nil)
	if err != nil {
		return err
	}
	Print(w, list[0], list[1], list[2])
	return nil
}

// Unmount calls fn until it finds the mount idle: it waits for the kernel to release what was closed last.
func Unmount(fn func() error) (err error) {
	for range 50 {
		if err = fn(); !errors.Is(err, syscall.EBUSY) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return err
}
