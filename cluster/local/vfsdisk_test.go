package local

import (
	"os"

	"ogw/cluster/local/internal/fileio"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// vfsDisk is a disk on a file system of Pebble's tests, which can lose what
// was not synced, and fail at chosen calls.
type vfsDisk struct{ fs vfs.FS }

func (d vfsDisk) Create(path string) (fileio.File, error) {
	if _, err := d.fs.Stat(path); err == nil {
		return nil, os.ErrExist
	}
	f, err := d.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	return vfsFile{File: f}, nil
}

func (d vfsDisk) OpenSegment(path string) (fileio.File, error) {
	f, err := d.fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	return vfsFile{f, true}, nil
}

func (d vfsDisk) Open(path string) (fileio.File, error) {
	f, err := d.fs.Open(path)
	if err != nil {
		return nil, err
	}
	return vfsFile{File: f}, nil
}

func (d vfsDisk) OpenDirect(path string) (fileio.File, error) { return d.Open(path) }

func (d vfsDisk) Remove(path string) error          { return d.fs.Remove(path) }
func (d vfsDisk) Rename(from, to string) error      { return d.fs.Rename(from, to) }
func (d vfsDisk) List(dir string) ([]string, error) { return d.fs.List(dir) }
func (d vfsDisk) Mkdir(dir string) error            { return d.fs.MkdirAll(dir, 0o700) }
func (d vfsDisk) Truncate(string, int64) error      { return nil } // allocate takes nothing either
func (d vfsDisk) Punch(string, int64, int64) error  { return nil } // as where there are no holes
func (d vfsDisk) SyncDir(dir string) error          { return fileio.SyncDir(d.fs, dir) }

type vfsFile struct {
	vfs.File
	durable bool // every write is synced
}

func (f vfsFile) WritePages(off int64, pages ...[]byte) error {
	for _, p := range pages {
		if len(p)%fileio.PageBytes != 0 || off%fileio.PageBytes != 0 {
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

func (f vfsFile) Allocate(bytes int64) error { return f.Preallocate(0, bytes) }

func (d vfsDisk) Length(path string) (int64, error) {
	info, err := d.fs.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (d vfsDisk) Held(path string) (int64, error) { return d.Length(path) }
