package local

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// disk is what the data half needs of the file system. The tests replace it
// to let the power fail.
type disk interface {
	// create makes a file for writing pages; os.ErrExist if there is one.
	create(path string) (diskFile, error)
	// openSegment opens a file for durable writes of pages: a write that
	// returned survives a power cut.
	openSegment(path string) (diskFile, error)
	// open opens a file for reading.
	open(path string) (diskFile, error)
	// openDirect opens a file for reading whole pages past the page cache.
	openDirect(path string) (diskFile, error)
	remove(path string) error
	rename(from, to string) error
	// truncate makes a file shorter.
	truncate(path string, bytes int64) error
	// punch gives back the space of whole pages of a file, which read as
	// zeros then, where the file system can do that.
	punch(path string, off, bytes int64) error
	list(dir string) ([]string, error)
	// length returns the length of a file in bytes.
	length(path string) (int64, error)
	mkdir(dir string) error
	// syncDir makes the entries of dir durable.
	syncDir(dir string) error
}

// diskFile is one open file.
type diskFile interface {
	io.ReaderAt
	// writePages writes whole pages from page-aligned memory, one buffer
	// after the other, at a multiple of pageBytes.
	writePages(off int64, pages ...[]byte) error
	// allocate reserves space without writing it.
	allocate(bytes int64) error
	sync() error
	Close() error
}

// osDisk is the operating system's file system.
type osDisk struct {
	direct  bool        // O_DIRECT works here
	relieve func() bool // see openWith
}

// newOSDisk finds out whether dir takes O_DIRECT; tmpfs and some others do
// not, and are then written through the page cache.
func newOSDisk(dir string) *osDisk {
	path := filepath.Join(dir, "probe.tmp")
	defer os.Remove(path)
	f, err := openPrivate(path, os.O_RDWR|os.O_CREATE|unix.O_DIRECT)
	if err == nil {
		defer f.Close()
		_, err = f.WriteAt(newPages(pageBytes), 0)
	}
	// A full disk, say, is no reason to do without.
	return &osDisk{direct: !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EOPNOTSUPP)}
}

func (d *osDisk) openFile(path string, flags int) (diskFile, error) {
	f, err := openWith(d.relieve, func() (*os.File, error) { return openPrivate(path, flags) })
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (d *osDisk) directFlag() int {
	if d.direct {
		return unix.O_DIRECT
	}
	return 0
}

func (d *osDisk) create(path string) (diskFile, error) {
	return d.openFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|d.directFlag())
}

func (d *osDisk) openSegment(path string) (diskFile, error) {
	return d.openFile(path, os.O_RDWR|os.O_CREATE|unix.O_DSYNC|d.directFlag())
}

func (d *osDisk) open(path string) (diskFile, error) { return d.openFile(path, os.O_RDONLY) }
func (d *osDisk) openDirect(path string) (diskFile, error) {
	return d.openFile(path, os.O_RDONLY|d.directFlag())
}
func (d *osDisk) remove(path string) error     { return os.Remove(path) }
func (d *osDisk) rename(from, to string) error { return os.Rename(from, to) }
func (d *osDisk) truncate(path string, n int64) error {
	f, err := openWith(d.relieve, func() (*os.File, error) { return openPrivate(path, os.O_WRONLY) })
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(n), f.Close())
}
func (d *osDisk) punch(path string, off, bytes int64) error {
	f, err := openWith(d.relieve, func() (*os.File, error) { return openPrivate(path, os.O_RDWR) })
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
func (d *osDisk) mkdir(dir string) error { return makePrivateFolder(vfs.Default, dir) }

func (d *osDisk) syncDir(dir string) error {
	_, err := openWith(d.relieve, func() (none struct{}, err error) { return none, syncDir(vfs.Default, dir) })
	return err
}

func (d *osDisk) list(dir string) ([]string, error) {
	f, err := openWith(d.relieve, func() (*os.File, error) { return os.Open(dir) })
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

type osFile struct{ *os.File }

// iovecsMax is the most buffers that one system call takes (IOV_MAX).
const iovecsMax = 1024

func (f osFile) writePages(off int64, pages ...[]byte) error {
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

func (f osFile) allocate(bytes int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, bytes)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return f.Truncate(bytes)
	}
	return err
}

func (d *osDisk) length(path string) (int64, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f osFile) sync() error { return f.Sync() }
