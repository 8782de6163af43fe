package metafs

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"sync"

	"ogw/cluster/local/internal/fileio"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// LogFS knows the folder of Pebble's logs. Between an old log's name and its
// bytes Pebble must not take it into use again.
type LogFS struct {
	vfs.FS
	dir string
	mu  sync.Mutex
}

// ReuseForWrite implements vfs.FS.
func (l *LogFS) ReuseForWrite(old, name string, why vfs.DiskWriteCategory) (vfs.File, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.FS.ReuseForWrite(old, name, why)
}

// Unwrap implements vfs.FS.
func (l *LogFS) Unwrap() vfs.FS { return l.FS }

// NewLogFS knows the logs in dir.
func NewLogFS(fs vfs.FS, dir string) *LogFS { return &LogFS{FS: fs, dir: dir} }

// Logs returns the names of all logs.
func (l *LogFS) Logs() ([]string, error) {
	names, err := l.FS.List(l.dir)
	if err != nil {
		return nil, err
	}
	var logs []string
	for _, name := range names {
		if strings.HasSuffix(name, ".log") {
			logs = append(logs, l.FS.PathJoin(l.dir, path.Base(name)))
		}
	}
	return logs, nil
}

// Wipe overwrites a log that is not needed any more, if it still has that
// name.
func (l *LogFS) Wipe(name string) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	info, err := l.FS.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	f, err := l.FS.OpenReadWrite(name, vfs.WriteCategoryUnspecified)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // Pebble may remove one at any time
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return fileio.ZeroOut(f, info.Size())
}
