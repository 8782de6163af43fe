package local

import (
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// vfsDisk is a disk on a file system of Pebble's tests, which can lose what
// was not synced, and fail at chosen calls.
type vfsDisk struct{ fs vfs.FS }

func (d vfsDisk) create(path string) (diskFile, error) {
	if _, err := d.fs.Stat(path); err == nil {
		return nil, os.ErrExist
	}
	f, err := d.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	return vfsFile{File: f}, nil
}

func (d vfsDisk) openSegment(path string) (diskFile, error) {
	f, err := d.fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	return vfsFile{f, true}, nil
}

func (d vfsDisk) open(path string) (diskFile, error) {
	f, err := d.fs.Open(path)
	if err != nil {
		return nil, err
	}
	return vfsFile{File: f}, nil
}

func (d vfsDisk) openDirect(path string) (diskFile, error) { return d.open(path) }

func (d vfsDisk) remove(path string) error          { return d.fs.Remove(path) }
func (d vfsDisk) rename(from, to string) error      { return d.fs.Rename(from, to) }
func (d vfsDisk) list(dir string) ([]string, error) { return d.fs.List(dir) }
func (d vfsDisk) mkdir(dir string) error            { return d.fs.MkdirAll(dir, 0o700) }
func (d vfsDisk) truncate(string, int64) error      { return nil } // allocate takes nothing either
func (d vfsDisk) punch(string, int64, int64) error  { return nil } // as where there are no holes
func (d vfsDisk) syncDir(dir string) error          { return syncDir(d.fs, dir) }

type vfsFile struct {
	vfs.File
	durable bool // every write is synced
}

func (f vfsFile) writePages(off int64, pages ...[]byte) error {
	for _, p := range pages {
		if len(p)%pageBytes != 0 || off%pageBytes != 0 {
			panic("not whole pages")
		}
		if _, err := f.WriteAt(p, off); err != nil {
			return err
		}
		off += int64(len(p))
	}
	if f.durable {
		return f.SyncData()
	}
	return nil
}

func (f vfsFile) allocate(bytes int64) error { return f.Preallocate(0, bytes) }

func (d vfsDisk) length(path string) (int64, error) {
	info, err := d.fs.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f vfsFile) sync() error { return f.Sync() }
