package fusemount

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A file handle (name_to_handle_at) names its file for as long as that lives,
// also for a kernel that knows nothing of it; and never another one.
func TestFileHandles(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		fs := openFS(t)
		top, s := mountFS(t, fs, Options{Transport: over})
		must(t, os.MkdirAll(filepath.Join(top, "bucket/dir/sub"), 0o755))
		names := []string{"bucket/dir/f", "bucket/dir/gone", "bucket/dir/moved", "bucket/dir/sub"}
		handles := map[string]unix.FileHandle{}
		for _, n := range names {
			if n != "bucket/dir/sub" {
				write(t, filepath.Join(top, n), n)
			}
			h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, filepath.Join(top, n), 0)
			if errors.Is(err, unix.EOPNOTSUPP) {
				t.Skip("this kernel has no file handles")
			}
			must(t, err)
			handles[n] = h
		}
		must(t, os.Remove(filepath.Join(top, "bucket/dir/gone")))
		write(t, filepath.Join(top, "bucket/dir/gone"), "another file")
		must(t, os.Rename(filepath.Join(top, "bucket/dir/moved"), filepath.Join(top, "bucket/elsewhere")))
		must(t, s.Unmount())

		top, _ = mountFS(t, fs, Options{Transport: over})
		root, err := unix.Open(top, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		must(t, err)
		defer unix.Close(root)
		for _, n := range names {
			fd, err := unix.OpenByHandleAt(root, handles[n], unix.O_RDONLY|unix.O_CLOEXEC)
			if errors.Is(err, unix.EPERM) {
				t.Skip("no right to open files by handle")
			}
			if n == "bucket/dir/gone" {
				if !errors.Is(err, unix.ESTALE) {
					t.Errorf("the handle of a removed file: %v, want ESTALE", err)
					unix.Close(fd)
				}
				continue
			}
			must(t, err)
			if n == "bucket/dir/sub" {
				var st, want unix.Stat_t
				must(t, unix.Fstatat(fd, "..", &st, 0))
				must(t, unix.Stat(filepath.Join(top, "bucket/dir"), &want))
				if st.Ino != want.Ino {
					t.Errorf("above the directory is inode %d, want %d", st.Ino, want.Ino)
				}
			} else {
				b := make([]byte, 100)
				k, err := unix.Read(fd, b)
				if err != nil || string(b[:k]) != n {
					t.Errorf("by the handle of %s: %q, %v", n, b[:max(k, 0)], err)
				}
			}
			unix.Close(fd)
		}
	})
}

// Without handles, the kernel offers none, of the whole store neither.
func TestNoHandles(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		top, _ := mountFS(t, openFS(t), Options{Transport: over, NoHandles: true})
		if _, _, err := unix.NameToHandleAt(unix.AT_FDCWD, top, 0); !errors.Is(err, unix.EOPNOTSUPP) {
			t.Errorf("a handle: %v, want EOPNOTSUPP", err)
		}
	})
}
