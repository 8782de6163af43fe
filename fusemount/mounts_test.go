package fusemount

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"ogw/vfs"
)

// needShared skips where the kernel has no superblocks with more than one
// mount, or we are not root.
func needShared(t *testing.T) {
	t.Helper()
	needFUSE(t)
	if os.Geteuid() != 0 {
		t.Skip("only root makes more than one mount of a superblock")
	}
	if _, err := mountID(unix.AT_FDCWD); err != nil {
		t.Skip(err)
	}
}

// mountOf mounts with a set until the test ends.
func mountOf(t testing.TB, m *Mounts, opt Options) (dir string, s *Server) {
	t.Helper()
	opt.AllowOther = true
	if opt.Logger == nil {
		opt.Logger = testLogger(t)
	}
	dir = t.TempDir()
	s, err := m.Mount(dir, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := s.Unmount()
		if err != nil {
			t.Errorf("unmount: %v", err)
			s.Detach()
		}
	})
	return dir, s
}

func device(t *testing.T, dir string) uint64 {
	t.Helper()
	var st unix.Stat_t
	must(t, unix.Stat(dir, &st))
	return st.Dev
}

// flagsOf are the options of a mount, without those of its superblock.
func flagsOf(dir string) []string { return strings.Split(mountEntry(dir)[5], ",") }

// Mounts whose options allow it share a superblock; what the kernel keeps for
// each mount is each one's own.
func TestMountsShare(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		needShared(t)
		m := NewMounts(openFS(t))
		one, a := mountOf(t, m, Options{Transport: over})
		two, b := mountOf(t, m, Options{Transport: over, ReadOnly: true, FSName: "another", MountFlags: []string{"suid", "noexec", "noatime", "nosymfollow"}})
		other, _ := mountOf(t, m, Options{Transport: over, AttrTimeout: time.Second})
		if device(t, one) != device(t, two) || a.conn != b.conn {
			t.Error("the mounts share no superblock")
		}
		if device(t, one) == device(t, other) {
			t.Error("mounts with other caches share a superblock")
		}
		must(t, os.Mkdir(filepath.Join(one, "x"), 0o755))
		if err := os.Mkdir(filepath.Join(two, "y"), 0o755); !errors.Is(err, syscall.EROFS) {
			t.Errorf("mkdir in the one that is read-only: %v", err)
		}
		if _, err := os.Stat(filepath.Join(two, "x")); err != nil {
			t.Error(err)
		}
		for dir, want := range map[string][]string{one: {"rw", "nosuid", "nodev", "relatime"}, two: {"ro", "nodev", "noexec", "noatime", "nosymfollow"}} {
			if got := flagsOf(dir); !slices.Equal(got, want) {
				t.Errorf("flags %v, want %v", got, want)
			}
		}
		must(t, os.Symlink("x", filepath.Join(one, "link")))
		for dir, want := range map[string]error{one: nil, two: syscall.ELOOP} {
			if _, err := os.Stat(filepath.Join(dir, "link")); !errors.Is(err, want) {
				t.Errorf("through a link: %v, want %v", err, want)
			}
		}
		must(t, Remount(two, []string{"symfollow"}))
		if _, err := os.Stat(filepath.Join(two, "link")); err != nil {
			t.Error(err)
		}
		if entry := strings.Join(mountEntry(two), " "); !strings.Contains(entry, " - fuse.ogw another ") {
			t.Errorf("mount table: %s", entry)
		}
		if a.LockClient() != b.LockClient() {
			t.Error("one superblock has two clients of locks")
		}
	})
}

// A mount outlives the one that it shares with, and its end is noticed whoever
// unmounts it.
func TestMountsEndOneByOne(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		needShared(t)
		m := NewMounts(openFS(t))
		one, a := mountOf(t, m, Options{Transport: over})
		two, b := mountOf(t, m, Options{Transport: over})
		three, c := mountOf(t, m, Options{Transport: over})
		must(t, os.Mkdir(filepath.Join(one, "bucket"), 0o755))
		must(t, a.Unmount())
		inTime(t, "the end of the first", a.Wait)
		write(t, filepath.Join(two, "bucket", "f"), "text")
		must(t, unix.Unmount(two, 0))
		inTime(t, "the end of the second", b.Wait)
		if got, err := os.ReadFile(filepath.Join(three, "bucket", "f")); err != nil || string(got) != "text" {
			t.Errorf("%q, %v", got, err)
		}
		again, d := mountOf(t, m, Options{Transport: over})
		if d.conn != c.conn {
			t.Error("a new mount has another superblock")
		}
		must(t, c.Unmount())
		must(t, d.Unmount())
		inTime(t, "the end of the connection", func() { <-c.conn.served })
		if entries, err := os.ReadDir(again); err != nil || len(entries) != 0 {
			t.Errorf("below the mount: %v, %v", entries, err)
		}
		_, e := mountOf(t, m, Options{Transport: over})
		if e.conn == c.conn {
			t.Error("a mount of a connection that ended")
		}
	})
}

// Programs in a mount that was taken out of the tree go on, while others show
// its superblock and after.
func TestMountsDetachedInUse(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		needShared(t)
		m := NewMounts(openFS(t))
		one, a := mountOf(t, m, Options{Transport: over})
		two, b := mountOf(t, m, Options{Transport: over})
		must(t, os.Mkdir(filepath.Join(one, "bucket"), 0o755))
		f, err := os.Create(filepath.Join(one, "bucket", "f"))
		must(t, err)
		defer f.Close()
		if err := a.Unmount(); !errors.Is(err, syscall.EBUSY) {
			t.Errorf("unmount of a mount in use: %v", err)
		}
		must(t, a.Detach())
		inTime(t, "the end of the first", a.Wait)
		_, err = f.WriteString("text")
		must(t, err)
		if got, err := os.ReadFile(filepath.Join(two, "bucket", "f")); err != nil || string(got) != "text" {
			t.Errorf("%q, %v", got, err)
		}
		must(t, b.Detach())
		_, err = f.WriteString("more")
		must(t, err)
		select {
		case <-b.gone:
			t.Error("the last mount is gone while a program uses its superblock")
		case <-time.After(50 * time.Millisecond):
		}
		must(t, f.Close())
		inTime(t, "the end of the connection", b.Wait)
	})
}

// What others mounted at the place of a mount, over it or after they took it away, stays.
func TestUnmountSparesOthers(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		needShared(t)
		m := NewMounts(openFS(t))
		dir, s := mountOf(t, m, Options{Transport: over})
		must(t, os.Mkdir(filepath.Join(dir, "bucket"), 0o755))
		f, err := os.Create(filepath.Join(dir, "bucket", "f"))
		must(t, err)
		defer f.Close()
		remains := func(want ...error) {
			t.Helper()
			for i, err := range []error{s.Unmount(), s.Detach()} {
				if !errors.Is(err, want[i]) {
					t.Errorf("call %d: %v, want %v", i, err, want[i])
				}
			}
			if got := mountedType(dir); got != "tmpfs" {
				t.Fatalf("%q is at the place", got)
			}
		}
		must(t, unix.Mount("other", dir, "tmpfs", 0, "size=4k"))
		remains(ErrCovered, ErrCovered)
		if err := Detach(dir); !errors.Is(err, ErrCovered) {
			t.Errorf("what covers a mount was detached: %v", err)
		}
		must(t, unix.Unmount(dir, 0))
		must(t, unix.Unmount(dir, unix.MNT_DETACH))
		must(t, unix.Mount("other", dir, "tmpfs", 0, "size=4k"))
		defer unix.Unmount(dir, unix.MNT_DETACH)
		remains(ErrAway, nil)
		_, err = f.WriteString("text")
		must(t, err)
		must(t, f.Close())
		inTime(t, "the end of the connection", s.Wait)
	})
}

// A mount that is there is not taken for one that is away where a sandbox refuses the call that
// lists mounts.
func TestUnmountWithoutIDs(t *testing.T) {
	needShared(t)
	_, s := mountOf(t, NewMounts(openFS(t)), Options{})
	if s.id == 0 {
		t.Skip("this kernel tells no mount its ID")
	}
	filter := []unix.SockFilter{ // of struct seccomp_data, which begins with the number of the call
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_LISTMOUNT},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	done := make(chan struct{})
	go onOwnThread(func() {
		defer close(done)
		if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program))); errno != 0 {
			t.Errorf("seccomp: %v", errno)
			return
		}
		if err := s.Unmount(); err != nil || IsMount(s.dir) {
			t.Errorf("unmount: %v", err)
		}
	})
	<-done
}

// A mount that was made elsewhere before is on top where it was moved.
func TestMovedMountIsOnTop(t *testing.T) {
	needShared(t)
	older := t.TempDir()
	must(t, unix.Mount("none", older, "tmpfs", 0, "size=4k"))
	must(t, unix.Mount("", older, "", unix.MS_PRIVATE, ""))
	tree := filepath.Join(older, "other")
	must(t, os.Mkdir(tree, 0o755))
	defer unix.Unmount(older, unix.MNT_DETACH)
	must(t, unix.Mount("other", tree, "tmpfs", 0, "size=4k"))
	dir, s := mountOf(t, NewMounts(openFS(t)), Options{})
	must(t, unix.Mount(tree, dir, "", unix.MS_MOVE, ""))
	if err := s.Unmount(); !errors.Is(err, ErrCovered) {
		t.Errorf("unmount: %v", err)
	}
	if got := mountedType(dir); got != "tmpfs" {
		t.Errorf("%q is on top", got)
	}
	must(t, unix.Unmount(dir, 0))
}

// A mount of a directory shares as well. It stays with its directory, and leads
// nowhere else.
func TestMountsShareDirectories(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		needShared(t)
		fs := openFS(t)
		m := NewMounts(fs)
		b, err := fs.Mkdir(bg, vfs.Root, vfs.RootIno, "bucket", 0o755)
		must(t, err)
		d, err := fs.Mkdir(bg, vfs.Root, b.Ino, "dir", 0o755)
		must(t, err)
		opt := Options{Transport: over, Done: func(*Record) {}, DoneAll: true} // while a mount is made, requests ask where mounts are
		whole, w := mountOf(t, m, opt)
		opt.Root = d.Ino
		part, p := mountOf(t, m, opt)
		if p.conn != w.conn {
			t.Skip("this kernel shows no part of a superblock that is in no place")
		}
		write(t, filepath.Join(part, "f"), "text")
		if got, err := os.ReadFile(filepath.Join(whole, "bucket/dir/f")); err != nil || string(got) != "text" {
			t.Errorf("%q, %v", got, err)
		}
		if got, err := os.ReadFile(filepath.Join(part, "..", filepath.Base(part), "f")); err != nil || string(got) != "text" {
			t.Errorf("through ..: %q, %v", got, err)
		}
		must(t, os.Rename(filepath.Join(whole, "bucket/dir"), filepath.Join(whole, "bucket/moved")))
		write(t, filepath.Join(part, "f"), "after")
		if got, err := os.ReadFile(filepath.Join(whole, "bucket/moved/f")); err != nil || string(got) != "after" {
			t.Errorf("moved: %q, %v", got, err)
		}
		must(t, fs.Rename(bg, vfs.Root, vfs.EntryName{Dir: b.Ino, Name: "moved"}, vfs.EntryName{Dir: b.Ino, Name: "again"}, 0)) // through another door
		if got, err := os.ReadFile(filepath.Join(part, "f")); err != nil || string(got) != "after" {
			t.Errorf("moved by another door: %q, %v", got, err)
		}
		must(t, os.Remove(filepath.Join(whole, "bucket/again/f")))
		must(t, os.Remove(filepath.Join(whole, "bucket/again")))
		if err := os.WriteFile(filepath.Join(part, "g"), nil, 0o644); !errors.Is(err, syscall.ENOENT) && !errors.Is(err, syscall.ESTALE) {
			t.Errorf("in a directory that was removed: %v", err)
		}
		must(t, p.Unmount())
		inTime(t, "the end of the part", p.Wait)
	})
}

// The way to a directory goes by its names; a link in its place is no way.
func TestPartBehindLink(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		needShared(t)
		fs := openFS(t)
		m := NewMounts(fs)
		whole, w := mountOf(t, m, Options{Transport: over})
		must(t, os.MkdirAll(filepath.Join(whole, "bucket/dir"), 0o755))
		must(t, os.Symlink("/etc", filepath.Join(whole, "bucket/link")))
		a, err := fs.Resolve(bg, vfs.Root, "bucket/dir", true)
		must(t, err)
		tree, err := w.conn.another(&w.conn.raw.opt)
		must(t, err)
		defer unix.Close(tree)
		// Between the question for the way and the walk, the directory moved.
		must(t, os.Rename(filepath.Join(whole, "bucket/dir"), filepath.Join(whole, "bucket/away")))
		must(t, os.Rename(filepath.Join(whole, "bucket/link"), filepath.Join(whole, "bucket/dir")))
		done := make(chan error, 1)
		go onOwnThread(func() {
			err := ownDescriptors(tree)
			if err == nil {
				_, err = walkTo("bucket/dir", a.Ino)
			}
			done <- errors.Join(err, unix.Chdir("/"))
		})
		if err := <-done; !errors.Is(err, unix.ELOOP) && !errors.Is(err, unix.ENOTDIR) {
			t.Errorf("through a link: %v", err)
		}
	})
}
