package fusebench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"ogw/cluster/local"
	"ogw/fusemount"
	"ogw/integration/bench/noopfs"
	"ogw/vfs"
)

// FUSE measures an ogw mount over a fresh embedded engine below base, the
// no-op file system, and base itself, in one run, and prints the ratios.
func FUSE(ctx context.Context, w io.Writer, base string, s Scale, log *slog.Logger) error {
	work, err := os.MkdirTemp(base, "ogw-fusebench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	plain, err := Measure(work, s)
	if err != nil {
		return fmt.Errorf("plain directory: %w", err)
	}
	noop, err := measureNoop(work, s)
	if err != nil {
		return fmt.Errorf("no-op file system: %w", err)
	}
	own, err := measureOwn(ctx, work, s, log)
	if err != nil {
		return fmt.Errorf("ogw mount: %w", err)
	}
	Print(w, own, noop, plain)
	return nil
}

func mountPoint(work, name string) (string, error) {
	dir := filepath.Join(work, name)
	return dir, os.Mkdir(dir, 0o755)
}

func measureNoop(work string, s Scale) ([]Result, error) {
	dir, err := mountPoint(work, "noop")
	if err != nil {
		return nil, err
	}
	server, err := noopfs.Mount(dir)
	if err != nil {
		return nil, err
	}
	list, err := Measure(dir, s)
	return list, errors.Join(err, unmount(server.Unmount))
}

func measureOwn(ctx context.Context, work string, s Scale, log *slog.Logger) (list []Result, err error) {
	c, err := local.Open(ctx, local.Options{Dir: filepath.Join(work, "store"), Logger: log})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	fs, err := vfs.Open(ctx, c, vfs.Config{Logger: log})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, fs.Close(ctx)) }()
	dir, err := mountPoint(work, "ogw")
	if err != nil {
		return nil, err
	}
	server, err := fusemount.Mount(fs, dir, fusemount.Options{AllowOther: true, Logger: log})
	if err != nil {
		return nil, err
	}
	list, err = measureBucket(dir, s)
	return list, errors.Join(err, unmount(server.Unmount))
}

func measureBucket(dir string, s Scale) ([]Result, error) {
	bucket := filepath.Join(dir, "bench")
	if err := os.Mkdir(bucket, 0o755); err != nil {
		return nil, err
	}
	return Measure(bucket, s)
}

// unmount waits for the kernel to release what was closed last.
func unmount(fn func() error) (err error) {
	for range 50 {
		if err = fn(); !errors.Is(err, syscall.EBUSY) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return err
}
