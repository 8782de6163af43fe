package fileio

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// OS is the operating system's file system.
type OS struct {
	direct bool // O_DIRECT works here
	// Relieve closes files that are only kept for later; see Open. Set before
	// the first use; may be nil.
	Relieve func() bool
}

// NewOS finds out whether dir takes O_DIRECT; tmpfs and some others do
// not, and are then written through the page cache.
func NewOS(dir string) *OS {
	path := filepath.Join(dir, "probe.tmp")
	defer os.Remove(path)
	f, err := OpenPrivate(path, os.O_RDWR|os.O_CREATE|unix.O_DIRECT)
	if err == nil {
		defer f.Close()
		_, err = f.WriteAt(NewPages(PageBytes), 0)
	}
	// A full disk, say, is no reason to do without.
	return &OS{direct: !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EOPNOTSUPP)}
}

func (d *OS) openFile(path string, flags int) (File, error) {
	f, err := Open(d.Relieve, func() (*os.File, error) { return OpenPrivate(path, flags) })
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (d *OS) directFlag() int {
	if d.direct {
		return unix.O_DIRECT
	}
	return 0
}

// Create implements Disk.
func (d *OS) Create(path string) (File, error) {
	return d.openFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|d.directFlag())
}

// OpenSegment implements Disk.
func (d *OS) OpenSegment(path string) (File, error) {
	return d.openFile(path, os.O_RDWR|os.O_CREATE|unix.O_DSYNC|d.directFlag())
}

// Open implements Disk.
func (d *OS) Open(path string) (File, error) { return d.openFile(path, os.O_RDONLY) }

// OpenDirect implements Disk.
func (d *OS) OpenDirect(path string) (File, error) {
	return d.openFile(path, os.O_RDONLY|d.directFlag())
}

// Remove implements Disk.
func (d *OS) Remove(path string) error { return os.Remove(path) }

// Rename implements Disk.
func (d *OS) Rename(from, to string) error { return os.Rename(from, to) }

// Truncate implements Disk.
func (d *OS) Truncate(path string, n int64) error {
	f, err := Open(d.Relieve, func() (*os.File, error) { return OpenPrivate(path, os.O_WRONLY) })
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(n), f.Close())
}

// Punch implements Disk.
func (d *OS) Punch(path string, off, bytes int64) error {
	f, err := Open(d.Relieve, func() (*os.File, error) { return OpenPrivate(path, os.O_RDWR) })
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	err = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, bytes)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	return err
}

// Mkdir implements Disk.
func (d *OS) Mkdir(dir string) error { return MkdirPrivate(vfs.Default, dir) }

// SyncDir implements Disk.
func (d *OS) SyncDir(dir string) error {
	_, err := Open(d.Relieve, func() (none struct{}, err error) { return none, SyncDir(vfs.Default, dir) })
	return err
}

// List implements Disk.
func (d *OS) List(dir string) ([]string, error) {
	f, err := Open(d.Relieve, func() (*os.File, error) { return os.Open(dir) })
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

type osFile struct{ *os.File }

// iovecsMax is the most buffers that one system call takes (IOV_MAX).
const iovecsMax = 1024

// WritePages implements File.
func (f osFile) WritePages(off int64, pages ...[]byte) error {
	if len(pages) == 1 {
		_, err := f.WriteAt(pages[0], off)
		return err
	}
	for len(pages) > 0 {
		some := pages[:min(len(pages), iovecsMax)]
		total := 0
		for _, p := range some {
			total += len(p)
		}
		n, err := f.pwritev(some, off)
		if err != nil {
			return &os.PathError{Op: "pwritev", Path: f.Name(), Err: err}
		}
		if n != total {
			// A short write is rare enough to be finished one by one.
			at := off
			for _, p := range some {
				if _, err := f.WriteAt(p, at); err != nil {
					return err
				}
				at += int64(len(p))
			}
		}
		off += int64(total)
		pages = pages[len(some):]
	}
	return nil
}

func (f osFile) pwritev(pages [][]byte, off int64) (int, error) {
	for {
		n, err := unix.Pwritev(int(f.Fd()), pages, off)
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// mapped implements pageFile.
func (f osFile) mapped(off int64, n int) ([]byte, error) { return mapFile(int(f.Fd()), off, n) }

// stamp implements pageFile.
func (f osFile) stamp() (stamp, error) { return stampOf(int(f.Fd())) }

// splice implements pageFile.
func (f osFile) splice(w int, off, n int64) (done int64, err error) {
	for done < n {
		k, err := unix.Splice(int(f.Fd()), &off, w, nil, int(n-done), unix.SPLICE_F_NONBLOCK)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN): // no room
			return done, nil
		case err != nil:
			return done, err
		case k == 0:
			return done, io.ErrUnexpectedEOF
		}
		done += k
	}
	return done, nil
}

// Allocate implements File.
func (f osFile) Allocate(bytes int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, bytes)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return f.Truncate(bytes)
	}
	return err
}

// Length implements Disk.
func (d *OS) Length(path string) (int64, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// statBlock is the unit of st_blocks, whatever blocks the file system has.
const statBlock = 512

// Held implements Disk.
func (d *OS) Held(path string) (int64, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * statBlock, nil
	}
	return info.Size(), nil
}
