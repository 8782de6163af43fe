package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"ogw/cmd/ogw/audit"
	"ogw/fusemount"
	"ogw/httpapi/admin"
	"ogw/httpapi/apierr"
	"ogw/vfs"
)

const (
	// maxMounts bounds the FUSE mounts of a process: each holds up to 64 MiB
	// of requests in flight.
	maxMounts = 64
	// busyTries and busyPause bound the wait for programs to leave a mount
	// when the process stops; then it is detached.
	busyTries = 10
	busyPause = 200 * time.Millisecond
)

// mountTable are the FUSE mounts of a process.
type mountTable struct {
	fs      *vfs.FS
	set     *fusemount.Mounts
	log     *slog.Logger
	record  string                                               // file that lists the mounts, for a start after a crash
	observe func(op string, took time.Duration, e syscall.Errno) // metrics
	audit   *auditor
	onEmpty func() // called when the last mount ends; may be nil

	mu     sync.Mutex // guards list and closed; never held while mounting
	list   []*mounted
	closed bool
}

type mounted struct {
	info   admin.Mount
	server *fusemount.Server
}

func (t *mountTable) init(fs *vfs.FS, log *slog.Logger, dir string, m *meters, a *auditor) {
	t.fs, t.set, t.log, t.record, t.observe, t.audit = fs, fusemount.NewMounts(fs), log, filepath.Join(dir, mountRecord), m.fuse, a
}

// Mounts implements admin.Process.
func (p *process) Mounts() []admin.Mount {
	p.mounts.mu.Lock()
	defer p.mounts.mu.Unlock()
	out := []admin.Mount{}
	for _, m := range p.mounts.list {
		info := m.info
		info.IOUring = "off"
		if m.server.Ring() {
			info.IOUring = "on"
		}
		out = append(out, info)
	}
	return out
}

// lockClients returns the directories by the names under which their locks
// are held: several, where mounts share what the kernel knows.
func (t *mountTable) lockClients() map[string][]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := map[string][]string{}
	for _, m := range t.list {
		c := m.server.LockClient()
		out[c] = append(out[c], m.info.Dir)
	}
	return out
}

// Mount implements admin.Process.
func (p *process) Mount(ctx context.Context, m admin.Mount) error {
	_, err := p.mounts.add(ctx, m)
	return err
}

// Umount implements admin.Process.
func (p *process) Umount(_ context.Context, dir string, lazy bool) error {
	return p.mounts.remove(dir, lazy)
}

func (t *mountTable) add(ctx context.Context, m admin.Mount) (*fusemount.Server, error) {
	t.mu.Lock()
	full, closed := len(t.list) >= maxMounts, t.closed
	t.mu.Unlock()
	if closed {
		return nil, vfs.ErrClosed
	}
	if full {
		return nil, fmt.Errorf("%w: there are %d mounts already", vfs.ErrBusy, maxMounts)
	}
	transport, ok := transports[m.IOUring]
	if !ok {
		return nil, fmt.Errorf("%w: io_uring: %q is not auto, on or off", apierr.ErrBadRequest, m.IOUring)
	}
	opt := fusemount.Options{
		ReadOnly: m.ReadOnly, AllowOther: m.AllowOther, NonEmpty: m.NonEmpty, Writeback: m.Writeback,
		FSName: m.Source, MountFlags: m.Flags, EntryTimeout: kernelCache(m.EntryTimeout), AttrTimeout: kernelCache(m.AttrTimeout),
		Transport: transport, Observe: t.observe, Logger: t.log,
		Done: t.audit.fuse(t.fs), DoneAll: t.audit.log.Wants(audit.Data),
	}
	if path := strings.Trim(m.Subtree, "/"); path != "" {
		if slices.Contains(strings.Split(path, "/"), "..") {
			return nil, fmt.Errorf("%w: subtree %s: the way begins at the root and takes no .. back", apierr.ErrBadRequest, m.Subtree)
		}
		a, err := t.fs.Resolve(ctx, vfs.Root, path, true)
		if err == nil && !a.IsDir() {
			err = vfs.ErrNotDir
		}
		if err != nil {
			return nil, fmt.Errorf("subtree %s: %w", m.Subtree, err)
		}
		opt.Root = a.Ino
	}
	server, err := t.set.Mount(m.Dir, opt)
	if err != nil {
		return nil, mountError(err)
	}
	m.Dir = server.Dir()
	entry := &mounted{m, server}
	t.mu.Lock()
	closed = t.closed
	if !closed {
		t.list = append(t.list, entry)
		t.save()
	}
	t.mu.Unlock()
	if closed { // the process began to stop meanwhile
		return nil, errors.Join(vfs.ErrClosed, server.Unmount())
	}
	t.audit.mounted("Mount", m.Dir, m.Settings())
	t.log.Info("mounted", "dir", m.Dir, "io_uring", server.Ring())
	go func() {
		server.Wait()
		t.audit.mounted("Umount", m.Dir, "")
		t.forget(entry)
		t.log.Info("unmounted", "dir", m.Dir)
	}()
	return server, nil
}

// mountError gives fusemount's errors their place in the tables.
func mountError(err error) error {
	switch {
	case errors.Is(err, fusemount.ErrMountPoint):
		return fmt.Errorf("%w: %w", apierr.ErrBadRequest, err)
	case errors.Is(err, fusemount.ErrNoRights):
		return fmt.Errorf("%w: %w", vfs.ErrPerm, err)
	case errors.Is(err, fusemount.ErrNoDevice), errors.Is(err, fusemount.ErrNoRing):
		return fmt.Errorf("%w: %w", apierr.ErrUnsupported, err)
	}
	return err
}

func (t *mountTable) forget(m *mounted) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list = slices.DeleteFunc(t.list, func(x *mounted) bool { return x == m })
	t.save()
	if len(t.list) == 0 && t.onEmpty != nil {
		t.onEmpty()
	}
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

func (t *mountTable) remove(dir string, lazy bool) error {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	t.mu.Lock()
	i := slices.IndexFunc(t.list, func(m *mounted) bool { return m.info.Dir == filepath.Clean(dir) })
	var m *mounted
	if i >= 0 {
		m = t.list[i]
	}
	t.mu.Unlock()
	if m == nil {
		return fmt.Errorf("%w: this process has no mount at %s", vfs.ErrNotExist, dir)
	}
	err := m.server.Unmount()
	if err != nil && lazy {
		return m.server.Detach()
	}
	if errors.Is(err, syscall.EBUSY) {
		return fmt.Errorf("%w: programs use %s; --lazy takes it out of the tree at once", vfs.ErrBusy, dir)
	}
	return err
}

// closeAll ends all mounts; no new ones come.
func (t *mountTable) closeAll() {
	t.mu.Lock()
	t.closed = true
	list := slices.Clone(t.list)
	t.mu.Unlock()
	for _, m := range list {
		err := m.server.Unmount()
		for i := 0; i < busyTries && errors.Is(err, syscall.EBUSY); i++ {
			time.Sleep(busyPause)
			err = m.server.Unmount()
		}
		if err != nil {
			t.log.Warn("programs still use a mount; they will get errors", "dir", m.info.Dir, "error", err)
			if err := m.server.Detach(); err != nil {
				t.log.Error("detach", "dir", m.info.Dir, "error", err)
			}
		}
	}
}
