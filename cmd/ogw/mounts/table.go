package mounts

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

// Table is the FUSE mounts of a process.
type Table struct {
	Config
	set     *fusemount.Mounts
	holding holding

	restoring sync.RWMutex // held by Restore, shared by Add; before mu

	mu      sync.Mutex // guards the rest; never held while mounting
	record  *record
	list    []*mounted
	absent  []entry // recorded, and not served
	closed  bool
	onEmpty func() // called when the last mount ends; may be nil
}

type mounted struct {
	entry
	server   *fusemount.Server
	removed  bool // by Remove: it does not come back
	returned bool // it came back with this process, and nobody has asked for it since
}

// Open makes the table of a process, with the mounts that the process before left
// to the holder. It belongs to vfs.Config.Restore. After an error the process must end: the
// holder keeps the mounts.
func Open(ctx context.Context, c Config) (*Table, error) {
	t := &Table{Config: c, set: fusemount.NewMounts(c.FS), record: openRecord(c.Dir, c.Log)}
	t.holding.path = filepath.Join(c.Dir, holderSocket)
	t.holding.ending, t.holding.close = context.WithCancel(context.Background())
	t.absent = t.record.read()
	if err := t.takeOver(ctx); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// List returns the mounts that are served.
func (t *Table) List() []admin.Mount {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := []admin.Mount{}
	for _, m := range t.list {
		info := m.Mount
		info.IOUring = "off"
		if m.server.Ring() {
			info.IOUring = "on"
		}
		out = append(out, info)
	}
	return out
}

// WhenEmpty has f called when the last mount ends; at once, if there is none.
func (t *Table) WhenEmpty(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.onEmpty = f
	if len(t.list) == 0 {
		f()
	}
}

// Last reports whether the process ends, since all its mounts have, and the next one makes
// none of them again.
func (t *Table) Last() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.Returns && !slices.ContainsFunc(t.list, func(m *mounted) bool { return !m.server.Ended() })
}

// LockClients returns the directories by the names under which their locks
// are held: several, where mounts share what the kernel knows.
func (t *Table) LockClients() map[string][]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := map[string][]string{}
	for _, m := range t.list {
		c := m.server.LockClient()
		out[c] = append(out[c], m.Dir)
	}
	return out
}

// Add makes a mount, unless it came back with this process: scripts that mount after
// each start get what they want. vfs.ErrClosed if the process is about to stop,
// vfs.ErrBusy if there are too many mounts, or one that is not served at the place.
func (t *Table) Add(ctx context.Context, m admin.Mount) error {
	t.restoring.RLock()
	defer t.restoring.RUnlock()
	m.Returns, m.Missing = t.Returns, ""
	if t.adopt(m) {
		return nil
	}
	return t.add(ctx, m, m.NonEmpty)
}

// Check returns why the mount m of a store that is about to be made would fail, as far
// as that can be told.
func Check(m admin.Mount, log *slog.Logger) error {
	if strings.Trim(m.Subtree, "/") != "" {
		return fmt.Errorf("subtree %s: %w", m.Subtree, vfs.ErrNotExist)
	}
	return mountError(fusemount.CheckMountPoint(m.Dir, fusemount.Options{NonEmpty: m.NonEmpty, Logger: log}))
}

// add is Add; over reports whether the directory may have entries.
func (t *Table) add(ctx context.Context, m admin.Mount, over bool) error {
	if err := t.room(m.Dir); err != nil {
		return err
	}
	opt, err := t.options(ctx, m)
	if err != nil {
		return err
	}
	opt.NonEmpty = over
	if err := t.holding.free(m.Dir); err != nil {
		return err
	}
	if m.Survive {
		if opt.Holder, err = t.held(m); err != nil {
			return err
		}
	}
	server, err := t.set.Mount(m.Dir, opt)
	if err != nil {
		return mountError(err)
	}
	m.Dir = server.Dir()
	if err := t.enter(m, server); err != nil {
		return errors.Join(err, server.Unmount())
	}
	t.Audit("Mount", m.Dir, m.Settings())
	t.Log.Info("mounted", "dir", m.Dir, "io_uring", server.Ring(), "survives", server.Survives())
	return nil
}

// room returns why there can be no mount at dir besides the others.
func (t *Table) room(dir string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return vfs.ErrClosed
	}
	n := len(t.list)
	for _, r := range t.absent {
		if r.Dir != dir {
			n++
		}
	}
	if n >= maxMounts {
		return fmt.Errorf("%w: there are %d mounts already", vfs.ErrBusy, maxMounts)
	}
	return nil
}

// enter lists a mount until it ends. vfs.ErrClosed if the process is about to
// stop.
func (t *Table) enter(m admin.Mount, server *fusemount.Server) error {
	e := &mounted{entry: entry{Mount: m, Place: place()}, server: server}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return vfs.ErrClosed
	}
	t.list = append(t.list, e)
	t.dropAbsent(m.Dir)
	t.save()
	go func() {
		server.Wait()
		t.Audit("Umount", m.Dir, "")
		t.forget(e)
		t.Log.Info("unmounted", "dir", m.Dir)
	}()
	return nil
}

// mountError gives fusemount's errors their place in the tables.
func mountError(err error) error {
	switch {
	case errors.Is(err, fusemount.ErrMountPoint), errors.Is(err, fusemount.ErrBeside):
		return fmt.Errorf("%w: %w", apierr.ErrBadRequest, err)
	case errors.Is(err, fusemount.ErrNoRights):
		return fmt.Errorf("%w: %w", vfs.ErrPerm, err)
	case errors.Is(err, fusemount.ErrNoDevice), errors.Is(err, fusemount.ErrNoRing):
		return fmt.Errorf("%w: %w", apierr.ErrUnsupported, err)
	}
	return err
}

func (t *Table) forget(m *mounted) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list = slices.DeleteFunc(t.list, func(x *mounted) bool { return x == m })
	if m.Stopped && !m.removed {
		t.absent = append(t.absent, m.entry)
	}
	t.save()
	if len(t.list) == 0 && t.onEmpty != nil {
		t.onEmpty()
	}
}

// Remove ends the mount at dir, a busy one only if lazy, and sees to it that no
// later process makes it again. vfs.ErrNotExist if there is none, or one that this
// process does not serve and cannot tell idle from busy, vfs.ErrBusy.
func (t *Table) Remove(dir string, lazy bool) error {
	m, dir := t.at(dir)
	if r := t.holding.waiting(dir); r != nil {
		if !lazy {
			return fmt.Errorf("%w: this process does not serve the mount at %s", vfs.ErrNotExist, dir)
		}
		r.End()
		return errors.Join(fusemount.Detach(dir), t.strike(dir))
	}
	if m == nil {
		return t.removeAbsent(dir)
	}
	err := m.server.Unmount()
	if err != nil && lazy && !errors.Is(err, fusemount.ErrAway) {
		err = m.server.Detach()
	}
	switch {
	case errors.Is(err, fusemount.ErrAway): // if something is at the place, it is another's
		if err := t.ended(dir); err != nil {
			return err
		}
		return fmt.Errorf("%w: %w", vfs.ErrNotExist, err)
	case errors.Is(err, fusemount.ErrCovered):
		return fmt.Errorf("%w: %w", vfs.ErrBusy, err)
	case errors.Is(err, syscall.EBUSY):
		return fmt.Errorf("%w: %s is in use by %s; %s", vfs.ErrBusy, dir, fusemount.Users(dir), LazyHint)
	case err != nil:
		return err
	}
	return t.ended(dir)
}

// LazyHint follows a message about a busy mount.
const LazyHint = "--lazy takes it out of the tree at once, and programs keep what they have open of it"

// at returns the mount at dir, or nil, and the path without symbolic links.
func (t *Table) at(dir string) (m *mounted, real string) {
	dir = filepath.Clean(dir)
	m = t.find(dir)
	if m == nil && !fusemount.IsMount(dir) { // one that nobody serves does not answer
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return t.find(real), real
		}
	}
	return m, dir
}

// find returns the mount at dir, or nil. One that somebody detached while programs use it may
// be listed before it.
func (t *Table) find(dir string) *mounted {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range slices.Backward(t.list) {
		if m.Dir == dir {
			return m
		}
	}
	return nil
}

// Close ends all mounts but those that survive; no new ones come. The next server
// makes them again.
func (t *Table) Close() {
	list := t.beginClose()
	// Those that stay are notified of what changes through them last.
	for _, m := range list {
		if !m.server.Survives() {
			t.end(m)
		}
	}
	for _, left := range t.set.LeaveAll() {
		for _, dir := range left.Dirs {
			t.Log.Info("a mount stays; its programs wait for the next server, and ogw umount ends it", "dir", dir)
		}
		if len(left.Dirs) == 0 {
			t.Log.Info("a mount that is out of the tree stays with the programs that use it; they wait for the next server")
		}
	}
	t.holding.close()
	for _, m := range list {
		if m.server.Survives() && !m.server.Left() {
			t.stopped(m)
			t.end(m)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.save()
	t.record.close()
}

// beginClose returns the mounts, the last one first, since it may be inside of
// another; noted as ended by Close but for those that survive.
func (t *Table) beginClose() []*mounted {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for _, m := range t.list {
		m.Stopped = m.Returns && !m.server.Survives()
	}
	t.save()
	list := slices.Clone(t.list)
	slices.Reverse(list)
	return list
}

// stopped notes that Close ends a mount.
func (t *Table) stopped(m *mounted) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m.Stopped = m.Returns
}

// end unmounts, or at least takes the mount out of the tree.
func (t *Table) end(m *mounted) {
	err := m.server.Unmount()
	for i := 0; i < busyTries && errors.Is(err, syscall.EBUSY); i++ {
		time.Sleep(busyPause)
		err = m.server.Unmount()
	}
	if err != nil {
		t.Log.Warn("programs still use a mount; they will get errors", "dir", m.Dir, "error", err)
		if err := m.server.Detach(); err != nil {
			t.Log.Error("detach", "dir", m.Dir, "error", err)
		}
	}
}
