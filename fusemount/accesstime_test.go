package fusemount

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"ogw/vfs"
)

// Reads move access times unless all mounts that share a superblock are noatime,
// which a remount changes; what other doors read is shown at once.
func TestAccessTimes(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		needFUSE(t)
		fs := openFS(t)
		m := NewMounts(fs)
		quiet, _ := mountOf(t, m, Options{Transport: over, MountFlags: []string{"noatime"}})
		file := filepath.Join(quiet, "bucket", "f")
		must(t, os.Mkdir(filepath.Dir(file), 0o755))
		write(t, file, "text")
		atime := func() syscall.Timespec {
			t.Helper()
			st, err := os.Stat(file)
			must(t, err)
			return st.Sys().(*syscall.Stat_t).Atim
		}
		read := func() {
			t.Helper()
			fd, err := unix.Open(file, unix.O_RDONLY|unix.O_DIRECT|unix.O_CLOEXEC, 0)
			must(t, err)
			defer unix.Close(fd)
			_, err = unix.Pread(fd, make([]byte, 4096), 0)
			must(t, err)
		}
		made := atime()
		read()
		if got := atime(); got != made {
			t.Errorf("a read through noatime moved it from %v to %v", made, got)
		}
		must(t, Remount(quiet, []string{"relatime"}))
		eventually(t, func() error { // the mount table is looked at when it changes
			if read(); atime() == made {
				return unix.EAGAIN
			}
			return nil
		})
		listingMoves := func() bool {
			t.Helper()
			dir := filepath.Dir(file)
			time := func() syscall.Timespec {
				st, err := os.Stat(dir)
				must(t, err)
				return st.Sys().(*syscall.Stat_t).Atim
			}
			must(t, os.Chmod(dir, 0o755)) // from here on the time is due
			before := time()
			_, err := os.ReadDir(dir)
			must(t, err)
			return time() != before
		}
		if !listingMoves() {
			t.Error("a listing leaves the time of the directory")
		}
		must(t, Remount(quiet, []string{"nodiratime"}))
		eventually(t, func() error {
			if listingMoves() {
				return unix.EAGAIN
			}
			return nil
		})
		must(t, os.Chmod(file, 0o644))
		made = atime()
		if read(); atime() == made {
			t.Error("nodiratime goes for files")
		}
		moved := atime()
		must(t, os.Chmod(file, 0o600))
		a, err := fs.Resolve(t.Context(), vfs.Root, "/bucket/f", false)
		must(t, err)
		fs.Accessed(t.Context(), a.Ino)
		if got := atime(); got == moved {
			t.Error("a read through another door is not shown")
		}
	})
}

// What belongs to all mounts of a superblock is not changed by one, nor silently
// left.
func TestRemountAllowOther(t *testing.T) {
	needFUSE(t)
	m := NewMounts(openFS(t))
	for _, allow := range []bool{false, true} {
		dir := t.TempDir()
		s, err := m.Mount(dir, Options{AllowOther: allow, Logger: testLogger(t)})
		must(t, err)
		if err := Remount(dir, []string{"ro", "allow_other"}); (err == nil) != allow {
			t.Errorf("remounting with allow_other what has it (%v): %v", allow, err)
		}
		must(t, s.Unmount())
	}
}
