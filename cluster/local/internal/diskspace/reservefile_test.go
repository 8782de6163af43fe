package diskspace

import (
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"ogw/cluster/local/internal/fileio"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// testReserve returns a reserve file in a folder, of a disk that asks for want bytes and has room
// for them.
func testReserve(t *testing.T, d fileio.Disk, dir string, want int64) *ReserveFile {
	t.Helper()
	total := uint64(want * reserveFileShare)
	fs := vfs.NewMem()
	fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: total, TotalBytes: total})
	space := New(fs, dir)
	if err := space.Measure(); err != nil {
		t.Fatal(err)
	}
	return NewReserveFile(d, filepath.Join(dir, "reserve"), space, slog.New(slog.DiscardHandler))
}

// blocks returns the bytes that a file takes of its disk.
func blocks(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Blocks * 512
}

// TestReserveWithHoles: a reserve file that lost its blocks, as a copy of it does (cp --sparse),
// holds no more than it takes of the disk, and gets them back.
func TestReserveWithHoles(t *testing.T) {
	const want = 8 << 20
	for name, data := range map[string]int64{"nothing": 0, "a part": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "reserve")
			if err := os.WriteFile(path, make([]byte, data), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(path, want); err != nil {
				t.Fatal(err)
			}
			held := blocks(t, path)
			r := testReserve(t, fileio.NewOS(dir), dir, want)
			if got := r.Held(); got != held {
				t.Errorf("it holds %d bytes, and has %d of the disk", got, held)
			}
			if err := r.renew(); err != nil {
				t.Fatal(err)
			}
			if got := r.Held(); got != want || blocks(t, path) < want {
				t.Errorf("made again, it holds %d bytes, and has %d of the disk, not %d", got, blocks(t, path), want)
			}
			for left := int64(want); left > 0; {
				if !r.Release() {
					t.Fatalf("nothing is released, with %d bytes left", left)
				}
				if left = r.Held(); left > blocks(t, path) {
					t.Fatalf("it holds %d bytes, and has %d of the disk", left, blocks(t, path))
				}
			}
			if r.Release() {
				t.Error("it released what it has not")
			}
		})
	}
}

// hollowDisk takes no space for what is allocated, as ZFS.
type hollowDisk struct {
	fileio.Disk
	opened int
}

func (d *hollowDisk) OpenSegment(path string) (fileio.File, error) {
	d.opened++
	f, err := d.Disk.OpenSegment(path)
	return hollowFile{f, path}, err
}

type hollowFile struct {
	fileio.File
	path string
}

func (f hollowFile) Allocate(bytes int64) error { return os.Truncate(f.path, bytes) }

// TestReserveOfNothing: where nothing can be held, nothing is promised to deletes, and it is not
// tried every second.
func TestReserveOfNothing(t *testing.T) {
	const want = 8 << 20
	dir := t.TempDir()
	d := &hollowDisk{Disk: fileio.NewOS(dir)}
	r := testReserve(t, d, dir, want)
	for range 3 {
		if err := r.renew(); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.Held(); got != 0 || d.opened != 1 {
		t.Errorf("it holds %d bytes, and was made %d times", got, d.opened)
	}
}
