package mounts

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"syscall"
	"time"

	"ogw/fusemount"
	"ogw/httpapi/admin"
	"ogw/httpapi/apierr"
	"ogw/vfs"
)

// Config of a Table.
type Config struct {
	FS  *vfs.FS
	Dir string // data folder
	Log *slog.Logger
	// Observe, Done and DoneAll are those of fusemount.Options, for all mounts.
	Observe func(operation string, took time.Duration, errno syscall.Errno)
	Done    func(*fusemount.Record)
	DoneAll bool
	// Returns reports whether the next process makes the mounts of this one again.
	Returns bool
	// Audit is notified of each mount that was made or that ended: Mount or Umount.
	Audit func(operation, dir, detail string)
}

// transports are the values of io_uring.
var transports = map[string]fusemount.Transport{
	"": fusemount.TransportAuto, "auto": fusemount.TransportAuto, "on": fusemount.TransportRing, "off": fusemount.TransportDevice,
}

// Transport returns what a value of admin.Mount.IOUring means.
func Transport(name string) (t fusemount.Transport, ok bool) {
	t, ok = transports[name]
	return t, ok
}

// options are those of a mount for a process.
func (c *Config) options(ctx context.Context, m admin.Mount) (opt fusemount.Options, err error) {
	transport, ok := Transport(m.IOUring)
	if !ok {
		return opt, fmt.Errorf("%w: io_uring: %q is not auto, on or off", apierr.ErrBadRequest, m.IOUring)
	}
	opt = fusemount.Options{
		ReadOnly: m.ReadOnly, AllowOther: m.AllowOther, NonEmpty: m.NonEmpty, Writeback: m.Writeback,
		FlushBehind: m.FlushBehind, NoHandles: m.NoHandles,
		FSName: m.Source, MountFlags: m.Flags, EntryTimeout: kernelCache(m.EntryTimeout), AttrTimeout: kernelCache(m.AttrTimeout),
		Transport: transport, Observe: c.Observe, Logger: c.Log,
		Done: c.Done, DoneAll: c.DoneAll,
	}
	if m.Abandon != nil {
		opt.Abandon = time.Duration(*m.Abandon * float64(time.Second))
	}
	if path := strings.Trim(m.Subtree, "/"); path != "" {
		if slices.Contains(strings.Split(path, "/"), "..") {
			return opt, fmt.Errorf("%w: subtree %s: the way begins at the root and takes no .. back", apierr.ErrBadRequest, m.Subtree)
		}
		a, err := c.FS.Resolve(ctx, vfs.Root, path, true)
		if err == nil && !a.IsDir() {
			err = vfs.ErrNotDir
		}
		if err != nil {
			return opt, fmt.Errorf("subtree %s: %w", m.Subtree, err)
		}
		opt.Root = a.Ino
	}
	return opt, nil
}

// kernelCache turns seconds into what fusemount takes: negative is none.
func kernelCache(seconds *float64) time.Duration {
	switch {
	case seconds == nil:
		return 0
	case *seconds <= 0:
		return -1
	}
	return time.Duration(*seconds * float64(time.Second))
}
