package fileio

import (
	"ogw/cluster/local/internal/ioerr"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Replace writes a small file, all of it or not at all.
func Replace(fs vfs.FS, dir, name string, data []byte) error {
	path := fs.PathJoin(dir, name)
	temp := path + ".new"
	f, err := fs.Create(temp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return ioerr.Map(err)
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = fs.Rename(temp, path)
	}
	if err == nil {
		err = SyncDir(fs, dir)
	}
	return ioerr.Map(err)
}

// SyncDir makes the entries of dir durable.
func SyncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if e := d.Close(); err == nil {
		err = e
	}
	return err
}

// Open opens a file. When the process, or the system, has no more of them,
// relieve closes some that are only kept for later.
func Open[F any](relieve func() bool, open func() (F, error)) (F, error) {
	f, err := open()
	if ioerr.OutOfFiles(err) && relieve != nil && relieve() {
		return open()
	}
	return f, err
}

// zeroChunk is what is zeroed at a time.
const zeroChunk = 1 << 20

// ZeroOut replaces the first bytes of a file by zeros, durably.
func ZeroOut(f vfs.File, bytes int64) error {
	zeros := make([]byte, min(bytes, zeroChunk))
	for at := int64(0); at < bytes; at += zeroChunk {
		if _, err := f.WriteAt(zeros[:min(zeroChunk, bytes-at)], at); err != nil {
			return err
		}
	}
	return f.Sync()
}
