package mounts

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ogw/cluster/mem"
	"ogw/fusemount"
	"ogw/fusemount/holder"
	"ogw/httpapi/admin"
	"ogw/vfs"
)

// newTable is the table of a process whose mounts come back or not.
func newTable(t *testing.T, returns bool) *Table {
	t.Helper()
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skip(err)
	}
	store := mem.New(mem.Options{})
	fs, err := vfs.Open(t.Context(), store, vfs.Config{NoBackground: true})
	if err != nil {
		t.Fatal(err)
	}
	table, err := Open(t.Context(), Config{FS: fs, Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler), Returns: returns,
		Audit: func(string, string, string) {}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		table.Close()
		if err := errors.Join(fs.Close(context.Background()), store.Close()); err != nil {
			t.Error(err)
		}
	})
	return table
}

// TestRemoveEndsProcess: whose last mount was removed may have closed the record before
// the removal looks at it.
func TestRemoveEndsProcess(t *testing.T) {
	for _, c := range []struct {
		name    string
		returns bool
		stopped bool // by somebody else, who has the mount come back
		want    error
	}{
		{"alone", false, false, nil},
		{"returns", true, false, nil},
		{"stopped", true, true, vfs.ErrClosed},
	} {
		t.Run(c.name, func(t *testing.T) {
			table, dir := newTable(t, c.returns), t.TempDir()
			if err := table.Add(t.Context(), admin.Mount{Dir: dir}); err != nil {
				t.Fatal(err)
			}
			empty := make(chan struct{})
			table.mu.Lock()
			table.onEmpty = func() { close(empty) }
			table.mu.Unlock()
			m, _ := table.at(dir)
			if c.stopped {
				table.Close()
			} else if err := m.server.Unmount(); err != nil {
				t.Fatal(err)
			}
			select {
			case <-empty:
			case <-time.After(time.Minute):
				t.Fatal("the mount does not end")
			}
			table.Close()
			if err := table.ended(dir); !errors.Is(err, c.want) || fusemount.IsMount(dir) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}

// A mount that somebody detached while a program uses it is not what is at its place any more.
func TestRemoveSparesOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root mounts a tmpfs")
	}
	table, dir := newTable(t, false), t.TempDir()
	if err := table.Add(t.Context(), admin.Mount{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	used, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer used.Close()
	if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	if err := table.Add(t.Context(), admin.Mount{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	if err := table.Remove(dir, false); err != nil || fusemount.IsMount(dir) {
		t.Errorf("of two that were made at one place, the one that is there: %v", err)
	}
	if err := unix.Mount("other", dir, "tmpfs", 0, "size=4k"); err != nil {
		t.Fatal(err)
	}
	for _, lazy := range []bool{false, true} {
		if err := table.Remove(dir, lazy); !errors.Is(err, vfs.ErrNotExist) {
			t.Errorf("lazy %v: %v", lazy, err)
		}
	}
	table.Close()
	if err := unix.Unmount(dir, 0); err != nil {
		t.Errorf("what somebody else mounted: %v", err)
	}
}

// lateHolder is the socket of a process that holds mounts and does not answer yet, to which a
// table is connected; hold has it hold something.
func lateHolder(t *testing.T, table *Table) (socket *os.File, m *heldMount, hold func() error) {
	t.Helper()
	socket, err := holder.Listen(table.holding.path)
	if err != nil {
		t.Fatal(err)
	}
	if m, err = table.held(admin.Mount{}); err != nil {
		t.Fatal(err)
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = unix.Close(pipe[0]), unix.Close(pipe[1]) })
	if m.h.client, err = holder.Dial(m.h.path); err != nil {
		t.Fatal(err)
	}
	return socket, m, func() error { return m.Hold("m", pipe[1], pipe[0]) }
}

// letGo has a holder end, which sends to ended.
func letGo(t *testing.T, m *heldMount, ended <-chan error) {
	t.Helper()
	m.Drop("m")
	m.h.close()
	if err := m.h.client.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestHolderAnswersLate: one late answer of the process that holds mounts is no reason to
// have none held any more.
func TestHolderAnswersLate(t *testing.T) {
	socket, m, hold := lateHolder(t, newTable(t, false))
	if err := hold(); !errors.Is(err, holder.ErrHung) {
		t.Errorf("while the holder does not answer: %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- holder.Serve(socket, m.h.path) }()
	if err := hold(); err != nil {
		t.Errorf("when it answers again: %v", err)
	}
	letGo(t, m, ended)
}

// logged is a log, line by line.
type logged chan string

// Write implements io.Writer.
func (l logged) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

// TestLateHolderIsNotGone: another connection to a holder that was late is no other holder.
func TestLateHolderIsNotGone(t *testing.T) {
	table, log := newTable(t, false), make(logged, 10)
	socket, m, hold := lateHolder(t, table)
	table.holding.watch(slog.New(slog.NewTextHandler(log, nil)), table.set)
	// What the holder has of this keeps it from ending before the next connection.
	if err := m.h.client.Put(holder.Item{Name: "other", Device: int(socket.Fd()), Memory: int(socket.Fd())}); !errors.Is(err, holder.ErrHung) {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- holder.Serve(socket, m.h.path) }()
	if err := hold(); err != nil {
		t.Error(err)
	}
	select {
	case line := <-log:
		t.Error(line)
	case <-time.After(200 * time.Millisecond):
	}
	m.Drop("other")
	letGo(t, m, ended)
}

// TestHolderThatHangs: where it is not known what programs have open, the store is not
// opened, whose collector would remove it.
func TestHolderThatHangs(t *testing.T) {
	store, dir := mem.New(mem.Options{}), t.TempDir()
	open := func(restore func(context.Context, *vfs.FS) error) error {
		fs, err := vfs.Open(t.Context(), store, vfs.Config{NoBackground: true, Restore: restore})
		if err == nil {
			t.Cleanup(func() { _ = fs.Close(context.Background()) })
		}
		return err
	}
	if err := open(func(ctx context.Context, fs *vfs.FS) error {
		_, _, err := fs.OpenTemp(ctx, vfs.Root, vfs.RootIno, 0o600, vfs.OpenWrite)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	socket, err := holder.Listen(filepath.Join(dir, holderSocket))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	for range 2 { // servers that waited for it, and were killed: its queue is full
		c, err := holder.Dial(socket.Name())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	if err := open(func(ctx context.Context, fs *vfs.FS) error {
		_, err := Open(ctx, Config{FS: fs, Dir: dir, Log: slog.New(slog.DiscardHandler)})
		return err
	}); !errors.Is(err, holder.ErrHung) {
		t.Errorf("the server starts: %v", err)
	}
	left := 0
	if err := open(func(ctx context.Context, fs *vfs.FS) error {
		return fs.Orphans(ctx, func(vfs.Ino) error { left++; return nil })
	}); err != nil || left != 1 {
		t.Errorf("of one removed file that a program has open, %d are left: %v", left, err)
	}
}
