package fusemount

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"ogw/vfs"
)

// TestOwnAttributes: a mount answers ogw. names as every other door of files does,
// also for a file that has no name any more.
func TestOwnAttributes(t *testing.T) {
	onTransports(t, func(t *testing.T, over Transport) {
		fs, dir := mountBucket(t, over)
		path := filepath.Join(dir, "f")
		write(t, path, "some bytes")
		file, err := os.Open(path)
		must(t, err)
		defer file.Close()
		fd := int(file.Fd())
		a, err := fs.Resolve(bg, vfs.Root, "bucket/f", true)
		must(t, err)
		same := func(name string) {
			t.Helper()
			want, wantErr := fs.GetXattr(bg, vfs.Root, a.Ino, name)
			got := make([]byte, vfs.MaxXattrValueBytes)
			n, err := unix.Fgetxattr(fd, name, got)
			if (err == nil) != (wantErr == nil) || err == nil && string(got[:n]) != string(want) {
				t.Errorf("%s is %q, %v: want %q, %v", name, got[:max(n, 0)], err, want, wantErr)
			}
			if err == nil && n == 0 && name != "ogw.whereis" {
				t.Errorf("%s is empty", name)
			}
		}
		for _, name := range []string{"ogw.key", "ogw.etag", "ogw.whereis", "ogw.none"} {
			same(name)
			if err := unix.Fsetxattr(fd, name, []byte("x"), 0); err != unix.EPERM {
				t.Errorf("setting %s: %v", name, err)
			}
			if err := unix.Fremovexattr(fd, name); err != unix.EPERM {
				t.Errorf("removing %s: %v", name, err)
			}
		}
		must(t, os.Remove(path))
		for _, name := range []string{"ogw.key", "ogw.etag", "ogw.whereis"} {
			same(name)
		}
	})
}
