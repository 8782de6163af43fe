package metafs

import (
	"time"

	"ogw/cluster/local/internal/ioerr"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// forLog is Pebble's name for writing its log.
const forLog vfs.DiskWriteCategory = "pebble-wal"

// filesWait bounds how long a new log waits while the process may open no more
// files.
const filesWait = 10 * time.Second

// walErrorFS hides errors of the log from Pebble, which would end the process
// when it begins a new one and that fails, or the end of the old one does. They
// go to health, which KV asks after every sync: from the first on, nothing is
// acknowledged, nothing removed, and what is written goes nowhere. That includes
// new logs, so the log that failed stays the newest: at the next start its end may be
// torn, or zeros, which Pebble takes for damage in any other.
type walErrorFS struct {
	vfs.FS
	health *Health
	wait   *SpaceWait
}

// Create implements vfs.FS.
func (fs walErrorFS) Create(name string, why vfs.DiskWriteCategory) (vfs.File, error) {
	return fs.begin(why, func() (vfs.File, error) { return fs.FS.Create(name, why) })
}

// ReuseForWrite implements vfs.FS.
func (fs walErrorFS) ReuseForWrite(old, name string, why vfs.DiskWriteCategory) (vfs.File, error) {
	return fs.begin(why, func() (vfs.File, error) { return fs.FS.ReuseForWrite(old, name, why) })
}

func (fs walErrorFS) begin(why vfs.DiskWriteCategory, open func() (vfs.File, error)) (vfs.File, error) {
	if why == forLog && fs.wait.begun.Load() && fs.health.failed.Load() != nil {
		return nowhere()
	}
	f, err := open()
	if why != forLog || err != nil && !fs.wait.begun.Load() {
		return f, err // of Pebble's start, which returns it
	}
	for end := time.Now().Add(filesWait); ioerr.OutOfFiles(err) && time.Now().Before(end) && fs.wait.pause(stallPoll); {
		f, err = open()
	}
	if err != nil {
		_ = fs.health.Fail(err)
		return nowhere()
	}
	return &walErrorLog{f, fs.health}, nil
}

// nowhere is a log whose bytes nobody sees.
func nowhere() (vfs.File, error) { return vfs.NewMem().Create("log", forLog) }

// OpenDir implements vfs.FS: a log begins with a sync of its folder. Those for
// other files are reported, since what follows relies on them.
func (fs walErrorFS) OpenDir(name string) (vfs.File, error) {
	f, err := fs.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &walErrorDir{f, fs.health}, nil
}

// Unwrap implements vfs.FS.
func (fs walErrorFS) Unwrap() vfs.FS { return fs.FS }

type walErrorDir struct {
	vfs.File
	health *Health
}

// Sync implements vfs.File.
func (d *walErrorDir) Sync() error {
	err := d.File.Sync()
	if err != nil && calledFrom("rotateWAL") {
		_ = d.health.Fail(err)
		return nil
	}
	return err
}

type walErrorLog struct {
	vfs.File
	health *Health
}

// note reports an error to health. After one, nothing is written any more.
func (f *walErrorLog) note(op func() error) error {
	if f.health.failed.Load() != nil {
		return nil
	}
	if err := op(); err != nil {
		_ = f.health.Fail(err)
	}
	return nil
}

// Write implements vfs.File.
func (f *walErrorLog) Write(p []byte) (int, error) {
	return len(p), f.note(func() error { _, err := f.File.Write(p); return err })
}

// Sync implements vfs.File.
func (f *walErrorLog) Sync() error { return f.note(f.File.Sync) }

// SyncData implements vfs.File.
func (f *walErrorLog) SyncData() error { return f.note(f.File.SyncData) }

// SyncTo implements vfs.File.
func (f *walErrorLog) SyncTo(length int64) (full bool, err error) {
	err = f.note(func() (err error) { full, err = f.File.SyncTo(length); return err })
	return full, err
}

// Close implements vfs.File. The file is closed in any case.
func (f *walErrorLog) Close() error {
	if err := f.File.Close(); err != nil && f.health.failed.Load() == nil {
		_ = f.health.Fail(err)
	}
	return nil
}
