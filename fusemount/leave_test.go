package fusemount

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// leaving makes a mount that survives, and ends it behind its server.
func leaving(t *testing.T, m *Mounts) *Server {
	t.Helper()
	dir := t.TempDir()
	s, err := m.Mount(dir, Options{Holder: &listHolder{}, AllowOther: true, Logger: testLogger(t)})
	must(t, err)
	t.Cleanup(func() {
		must(t, unix.Unmount(dir, unix.MNT_FORCE|unix.MNT_DETACH))
		s.conn.loop.close()
		unix.Close(s.conn.fd)
		s.conn.raw.holds.Close()
	})
	return s
}

// A superblock is left in order if nobody changes anything that its kernel is not
// notified of: alone, or with others that are left too, and not beside one that stays.
func TestLeaveInOrder(t *testing.T) {
	needShared(t)
	t.Run("alone", func(t *testing.T) {
		m := NewMounts(openFS(t))
		a := leaving(t, m)
		must(t, os.Mkdir(filepath.Join(a.dir, "bucket"), 0o755))
		if all := m.LeaveAll(); len(all) != 1 || all[0].Dirs[0] != a.dir || !a.Left() || !a.conn.raw.surv.book.Clean() {
			t.Errorf("left %v, in order: %v", all, a.conn.raw.surv.book.Clean())
		}
	})
	t.Run("beside one that stays", func(t *testing.T) {
		m := NewMounts(openFS(t))
		mountOf(t, m, Options{})
		a := leaving(t, m)
		if all := m.LeaveAll(); len(all) != 1 || a.conn.raw.surv.book.Clean() {
			t.Errorf("left %v, in order: %v", all, a.conn.raw.surv.book.Clean())
		}
	})
	t.Run("beside one that nobody holds", func(t *testing.T) {
		m := NewMounts(openFS(t))
		a, b := leaving(t, m), leavingOther(t, m)
		b.conn.raw.opt.Holder.(*listHolder).err = unix.EMFILE
		if all := m.LeaveAll(); len(all) != 1 || !a.Left() || b.Left() || a.conn.raw.surv.book.Clean() {
			t.Errorf("left %v, in order: %v", all, a.conn.raw.surv.book.Clean())
		}
	})
}

// leavingOther makes one with a superblock of its own, which the test leaves served.
func leavingOther(t *testing.T, m *Mounts) *Server {
	t.Helper()
	dir := t.TempDir()
	s, err := m.Mount(dir, Options{Holder: &listHolder{}, AllowOther: true, AttrTimeout: 1, Logger: testLogger(t)})
	must(t, err)
	t.Cleanup(func() { must(t, s.Unmount()) })
	return s
}
