package fusemount

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"ogw/vfs"
)

// What another door removes answers programs that refer to it, and goes when
// the kernel forgets it: because they let go, or because the mount ended.
func TestRemovedByAnotherDoor(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		ends := map[string]func(t *testing.T, dir string, s *Server, fds []int){
			"let go": func(_ *testing.T, _ string, _ *Server, fds []int) { closeAll(fds) },
			"detach": func(t *testing.T, _ string, s *Server, fds []int) { must(t, s.Detach()); closeAll(fds) },
			"abort": func(t *testing.T, dir string, s *Server, fds []int) {
				abort(t, dir)
				closeAll(fds)
				must(t, s.Detach())
			},
		}
		for how, end := range ends {
			t.Run(how, func(t *testing.T) {
				fs := openFS(t)
				top, s := mountFS(t, fs, Options{Transport: over})
				dir := filepath.Join(top, "bucket")
				must(t, os.Mkdir(dir, 0o755))
				var inos []vfs.Ino
				var fds []int
				for i, mk := range []func(string) error{
					func(n string) error { return os.Mkdir(n, 0o755) },
					func(n string) error { return unix.Mkfifo(n, 0o644) },
					func(n string) error { return os.WriteFile(n, []byte("text"), 0o644) },
					func(n string) error { return os.Symlink("x", n) },
				} {
					name := fmt.Sprint("f", i)
					must(t, mk(filepath.Join(dir, name)))
					fd, err := unix.Open(filepath.Join(dir, name), unix.O_PATH|unix.O_NOFOLLOW, 0)
					must(t, err)
					fds = append(fds, fd)
					var st unix.Stat_t
					must(t, unix.Fstat(fd, &st))
					inos = append(inos, vfs.Ino(st.Ino))
					bucket, err := fs.Lookup(bg, vfs.Root, vfs.RootIno, "bucket")
					must(t, err)
					remove := fs.Unlink
					if i == 0 {
						remove = fs.Rmdir
					}
					must(t, remove(bg, vfs.Root, bucket.Ino, name))
					if err := unix.Fstatat(fd, "", &st, unix.AT_EMPTY_PATH); err != nil || st.Nlink != 0 {
						t.Errorf("fstat of removed %s: %d links, %v", name, st.Nlink, err)
					}
				}
				if b, err := os.ReadFile(fmt.Sprintf("/proc/self/fd/%d", fds[2])); err != nil || string(b) != "text" {
					t.Errorf("a removed file holds %q, %v", b, err)
				}
				end(t, top, s, fds)
				for _, ino := range inos {
					eventually(t, func() error {
						if _, err := fs.GetAttr(bg, ino); !errors.Is(err, vfs.ErrStale) {
							return fmt.Errorf("inode %d is still there: %w", ino, err)
						}
						return nil
					})
				}
			})
		}
	})
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// The kernel's counts and ours agree: when it forgot everything, nothing but
// the root is held.
func TestHoldsFollowTheKernel(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		fs := openFS(t)
		top, s := mountFS(t, fs, Options{Transport: over})
		for i := range 200 {
			name := filepath.Join(top, "bucket", fmt.Sprint(i%20), fmt.Sprint(i))
			must(t, os.MkdirAll(filepath.Dir(name), 0o755))
			must(t, os.WriteFile(name, nil, 0o644))
			must(t, os.Link(name, name+"-link"))
			must(t, os.Symlink(name, name+"-symlink"))
		}
		must(t, run(t, "ls", "-lR", top))
		must(t, run(t, "find", top, "-size", "+1"))
		held := func() (inodes, holds uint64) {
			s.conn.raw.holds.Each(func(_ vfs.Ino, n uint64) { inodes, holds = inodes+1, holds+n })
			return inodes, holds
		}
		inodes, holds := held()
		t.Logf("%d inodes are held, %d times", inodes, holds)
		if inodes < 400 {
			t.Errorf("only %d inodes are held", inodes)
		}
		eventually(t, func() error {
			// Of slabs: dentries and inodes that nobody uses.
			if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("2"), 0); err != nil {
				t.Skipf("cannot drop the kernel's caches: %v", err)
			}
			if inodes, holds := held(); inodes != 1 {
				return fmt.Errorf("%d inodes are held, %d times", inodes, holds)
			}
			return nil
		})
	})
}
