package local

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"ogw/cluster"
	"ogw/cluster/local/internal/record"
)

// Folder is the data folder of a process whose store is elsewhere, which has it until Close.
type Folder struct {
	dir  string
	lock io.Closer
	// held tells the lock from all others that anybody on this machine holds; empty where that
	// cannot be told.
	held string
}

// OpenFolder makes and locks a Folder, as Open does for its own. It returns ErrLocked if
// another process has it, and ErrFormat for one that holds a store of this engine.
func OpenFolder(dir string, networkFS bool, log *slog.Logger) (*Folder, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := makeFolder(dir, &Options{Logger: log}); err != nil {
		return nil, err
	}
	lock, err := lockFolder(dir)
	if err != nil {
		return nil, err
	}
	if _, err = os.Lstat(filepath.Join(dir, record.FormatFile)); err == nil {
		err = fmt.Errorf("%w: folder %s holds a store of the embedded engine", cluster.ErrFormat, dir)
	} else if errors.Is(err, os.ErrNotExist) {
		err = checkFileSystem(dir, statfsType, networkFS, log)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return &Folder{dir, lock, heldLock(lock)}, nil
}

// Close leaves the folder to the next process. Whoever entered answers nobody any more.
func (f *Folder) Close() error { return f.lock.Close() }
