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

// Config of a Table.
type Config struct {
	FS  *vfs.FS
	Dir string // data folder
	Log *slog.Logger
	// Observe, Done and DoneAll are those of fusemount.Options, for all mounts.
	Observe func(operation string, took time.Duration, errno syscall.Errno)
	Done    func(*fusemount.Record)
	DoneAll bool
	// Audit is told of each mount that was made or that ended: Mount or Umount.
	Audit func(operation, dir, detail string)
}

// Table is the FUSE mounts of a process.
type Table struct {
	Config
	set     *fusemount.Mounts
	record  string // file that lists the mounts, for a start after a crash
	holding holding
	before  []admin.Mount // mounts of the process before

	mu      sync.Mutex // guards the rest; never held while mounting
	list    []*mounted
	closed  bool
	onEmpty func() // called when the last mount ends; may be nil
}

type mounted struct {
	info   admin.Mount
	server *fusemount.Server
}

// Open makes the table of a process, with the mounts that the process before left
// to the holder. It belongs to vfs.Config.Restore.
func Open(ctx context.Context, c Config) *Table {
	t := &Table{Config: c, set: fusemount.NewMounts(c.FS), record: filepath.Join(c.Dir, RecordName)}
	t.holding.path = filepath.Join(c.Dir, holderSocket)
	t.holding.ending, t.holding.close = context.WithCancel(context.Background())
	t.before = t.recorded()
	t.takeOver(ctx)
	return t
}

// List returns the mounts.
func (t *Table) List() []admin.Mount {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := []admin.Mount{}
	for _, m := range t.list {
		info := m.info
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

// LockClients returns the directories by the names under which their locks
// are held: several, where mounts share what the kernel knows.
func (t *Table) LockClients() map[string][]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := map[string][]string{}
	for _, m := range t.list {
		c := m.server.LockClient()
		out[c] = append(out[c], m.info.Dir)
	}
	return out
}

// Add makes a mount. vfs.ErrClosed if the process is about to stop, vfs.ErrBusy if
// there are too many mounts, or one that is not served at the place.
func (t *Table) Add(ctx context.Context, m admin.Mount) error {
	t.mu.Lock()
	full, closed := len(t.list) >= maxMounts, t.closed
	t.mu.Unlock()
	if closed {
		return vfs.ErrClosed
	}
	if full {
		return fmt.Errorf("%w: there are %d mounts already", vfs.ErrBusy, maxMounts)
	}
	opt, err := t.options(ctx, m)
	if err != nil {
		return err
	}
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

// enter lists a mount until it ends. vfs.ErrClosed if the process is about to
// stop.
func (t *Table) enter(m admin.Mount, server *fusemount.Server) error {
	entry := &mounted{m, server}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return vfs.ErrClosed
	}
	t.list = append(t.list, entry)
	t.save()
	go func() {
		server.Wait()
		t.Audit("Umount", m.Dir, "")
		t.forget(entry)
		t.Log.Info("unmounted", "dir", m.Dir)
	}()
	return nil
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

// options are those of a mount.
func (t *Table) options(ctx context.Context, m admin.Mount) (opt fusemount.Options, err error) {
	transport, ok := Transport(m.IOUring)
	if !ok {
		return opt, fmt.Errorf("%w: io_uring: %q is not auto, on or off", apierr.ErrBadRequest, m.IOUring)
	}
	opt = fusemount.Options{
		ReadOnly: m.ReadOnly, AllowOther: m.AllowOther, NonEmpty: m.NonEmpty, Writeback: m.Writeback,
		FSName: m.Source, MountFlags: m.Flags, EntryTimeout: kernelCache(m.EntryTimeout), AttrTimeout: kernelCache(m.AttrTimeout),
		Transport: transport, Observe: t.Observe, Logger: t.Log,
		Done: t.Done, DoneAll: t.DoneAll,
	}
	if m.Abandon != nil {
		opt.Abandon = time.Duration(*m.Abandon * float64(time.Second))
	}
	if path := strings.Trim(m.Subtree, "/"); path != "" {
		if slices.Contains(strings.Split(path, "/"), "..") {
			return opt, fmt.Errorf("%w: subtree %s: the way begins at the root and takes no .. back", apierr.ErrBadRequest, m.Subtree)
		}
		a, err := t.FS.Resolve(ctx, vfs.Root, path, true)
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

func (t *Table) forget(m *mounted) {
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

// Remove ends the mount at dir, a busy one only if lazy: vfs.ErrNotExist if there is
// none, vfs.ErrBusy.
func (t *Table) Remove(dir string, lazy bool) error {
	if r := t.holding.waiting(dir); r != nil && lazy {
		r.End()
		return fusemount.Detach(filepath.Clean(dir))
	}
	m := t.find(dir)
	if m == nil && !fusemount.IsMount(filepath.Clean(dir)) { // one that nobody serves does not answer
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			m = t.find(real)
		}
	}
	if m == nil {
		return fmt.Errorf("%w: this process has no mount at %s", vfs.ErrNotExist, dir)
	}
	err := m.server.Unmount()
	if err != nil && lazy {
		return m.server.Detach()
	}
	if errors.Is(err, syscall.EBUSY) {
		return fmt.Errorf("%w: %s is in use by %s; --lazy takes it out of the tree at once", vfs.ErrBusy, dir, fusemount.Users(m.info.Dir))
	}
	return err
}

// find returns the mount at dir, or nil.
func (t *Table) find(dir string) *mounted {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.list, func(m *mounted) bool { return m.info.Dir == filepath.Clean(dir) })
	if i < 0 {
		return nil
	}
	return t.list[i]
}

// Close ends all mounts but those that survive; no new ones come.
func (t *Table) Close() {
	t.mu.Lock()
	t.closed = true
	list := slices.Clone(t.list)
	t.mu.Unlock()
	// What changes through them last is told to those that stay.
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
			t.end(m)
		}
	}
}

// end unmounts, or at least takes the mount out of the tree.
func (t *Table) end(m *mounted) {
	err := m.server.Unmount()
	for i := 0; i < busyTries && errors.Is(err, syscall.EBUSY); i++ {
		time.Sleep(busyPause)
		err = m.server.Unmount()
	}
	if err != nil {
		t.Log.Warn("programs still use a mount; they will get errors", "dir", m.info.Dir, "error", err)
		if err := m.server.Detach(); err != nil {
			t.Log.Error("detach", "dir", m.info.Dir, "error", err)
		}
	}
}
