package metafs

import (
	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// aheadBytes is how far a log is filled before it is written.
	aheadBytes = 256 << 10
	// aheadSync bounds the syncs for which that is done: who writes more at a
	// time would wait for the zeros, and hardly for the journal.
	aheadSync = 64 << 10
)

// aheadFS fills logs with zeros before they are written. Space that was reserved
// and never written becomes part of a file by a change of the file system's own
// metadata, so each sync of what lies there waits for the journal as well as for
// the bytes: twice as long. A log that Pebble uses again has been written.
// For Pebble zeros are the end of a log, as what an older one left is.
type aheadFS struct{ vfs.FS }

// Create implements vfs.FS.
func (fs aheadFS) Create(name string, why vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, why)
	if err != nil || why != forLog {
		return f, err
	}
	return &aheadLog{File: f}, nil
}

// ReuseForWrite implements vfs.FS.
func (fs aheadFS) ReuseForWrite(old, name string, why vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.ReuseForWrite(old, name, why)
	if err != nil || why != forLog {
		return f, err
	}
	l := &aheadLog{File: f}
	if info, err := f.Stat(); err == nil {
		l.filled = info.Size()
	}
	return l, nil
}

// Unwrap implements vfs.FS.
func (fs aheadFS) Unwrap() vfs.FS { return fs.FS }

// aheadLog is a log that is written. One goroutine of Pebble writes and syncs it.
type aheadLog struct {
	vfs.File
	written int64
	synced  int64 // as far as it was written then
	filled  int64 // as far as the file has bytes, if that is more
	failed  bool
}

// Write implements vfs.File.
func (f *aheadLog) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.written += int64(n)
	return n, err
}

// SyncData implements vfs.File.
func (f *aheadLog) SyncData() error {
	if f.written > f.filled && f.written-f.synced <= aheadSync {
		f.fill()
	}
	err := f.File.SyncData()
	if err == nil {
		f.synced = f.written
	}
	return err
}

// fill writes zeros behind what was written. Where it fails the log is as it would
// be without: it has its space reserved, and what is wrong with the disk its own
// writes will show.
func (f *aheadLog) fill() {
	if f.failed {
		return
	}
	if _, err := f.File.WriteAt(zeros[:], f.written); err != nil {
		f.failed = true
		return
	}
	f.filled = f.written + aheadBytes
}

var zeros [aheadBytes]byte
